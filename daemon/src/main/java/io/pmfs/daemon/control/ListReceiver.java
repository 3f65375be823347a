package io.pmfs.daemon.control;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.LastHttpContent;
import io.pmfs.daemon.tasks.TaskLists;
import io.pmfs.machine.Reason;
import java.io.IOException;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Receives a request with a list of paths of any length. Another thread writes each piece to a file
 * before the next one is read. If the sender disconnects early, the file is removed.
 */
@SuppressWarnings("FutureReturnValueIgnored") // a channel reports failures to its handlers
final class ListReceiver extends ChannelInboundHandlerAdapter {
  private static final Logger log = LoggerFactory.getLogger(ListReceiver.class);

  private final TaskResource resource;
  private final Executor writer;
  private final BiConsumer<ChannelHandlerContext, ControlAnswer> respond;
  private TaskLists.@Nullable Upload upload; // only for the writer
  private boolean isAnswered; // only for the writer

  /**
   * @param writer a single thread
   */
  ListReceiver(
      TaskResource resource,
      Executor writer,
      BiConsumer<ChannelHandlerContext, ControlAnswer> respond) {
    this.resource = resource;
    this.writer = writer;
    this.respond = respond;
  }

  @Override
  public void handlerAdded(ChannelHandlerContext context) {
    context.channel().config().setAutoRead(false);
    context.channel().closeFuture().addListener(closed -> execute(this::giveUp));
  }

  @Override
  public void channelRead(ChannelHandlerContext context, Object message) {
    if (!(message instanceof HttpContent content)) {
      execute(() -> work(context, this::begin));
      return;
    }
    execute(
        () -> {
          try {
            work(context, () -> take(content));
          } finally {
            content.release();
          }
        });
  }

  @Override
  public void channelReadComplete(ChannelHandlerContext context) {
    execute(context::read);
  }

  /** Does nothing once the server stops; the next start removes unfinished lists. */
  private void execute(Runnable step) {
    try {
      writer.execute(step);
    } catch (RejectedExecutionException e) {
      log.debug("a list arrived too late: {}", e.getMessage());
    }
  }

  /** Returns null while more data must follow. */
  private interface Step {
    @Nullable ControlAnswer run() throws IOException;
  }

  private void work(ChannelHandlerContext context, Step step) {
    if (isAnswered) {
      return;
    }
    ControlAnswer answer;
    try {
      answer = step.run();
    } catch (IOException e) {
      answer =
          ControlAnswer.error(
              HttpResponseStatus.INSUFFICIENT_STORAGE,
              "the list of paths cannot be kept: " + Reason.of(e));
    } catch (IllegalArgumentException e) {
      answer = ControlAnswer.error(HttpResponseStatus.BAD_REQUEST, String.valueOf(e.getMessage()));
    } catch (RuntimeException | Error e) {
      log.error("a task with a list of paths failed", e);
      answer = ControlAnswer.error(HttpResponseStatus.INTERNAL_SERVER_ERROR, e.toString());
    }
    if (answer != null) {
      giveUp();
      respond.accept(context, answer);
    }
  }

  private @Nullable ControlAnswer begin() throws IOException {
    ControlAnswer refusal = resource.refusal();
    upload = refusal == null ? resource.lists().begin() : null;
    return refusal;
  }

  private @Nullable ControlAnswer take(HttpContent content) throws IOException {
    TaskLists.Upload into = upload;
    if (into == null) {
      return null;
    }
    if (content.decoderResult().isFailure()) {
      throw new IllegalArgumentException("not an HTTP request");
    }
    ByteBuf bytes = content.content();
    if (bytes.isReadable()) {
      into.write(bytes.nioBuffer());
    }
    return content instanceof LastHttpContent ? resource.start(into.end()) : null;
  }

  private void giveUp() {
    isAnswered = true;
    if (upload != null) {
      upload.close();
    }
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
    context.close();
  }
}
