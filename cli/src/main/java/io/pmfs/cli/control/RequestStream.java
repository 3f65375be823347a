package io.pmfs.cli.control;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioIoHandler;
import io.netty.handler.codec.http.HttpClientCodec;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.LastHttpContent;
import io.pmfs.daemon.requests.LineSplitter;
import io.pmfs.machine.TimeSpan;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/**
 * A stream of log lines of a daemon's requests, from its control socket, until either side closes.
 */
@SuppressWarnings("FutureReturnValueIgnored") // a channel's handler gets its failures
public final class RequestStream implements AutoCloseable {
  private static final int HTTP_OK = 200;
  private static final int HTTP_NOT_FOUND = 404;
  private static final int MAX_ERROR_BYTES = 64 << 10;

  private final EventLoopGroup loop = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
  private final CompletableFuture<ControlClient.Answer> begun = new CompletableFuture<>();
  private final Runnable ended;
  private final LineSplitter lines;

  private RequestStream(Consumer<String> lines, Runnable ended) {
    this.lines = new LineSplitter(lines);
    this.ended = ended;
  }

  /**
   * Connects and starts to receive.
   *
   * @param lines receives each line, in a separate thread; if it is slow, the daemon drops and
   *     counts lines
   * @param ended runs at least once when the daemon has ended the stream
   * @throws IOException if no daemon answers in time, or with the daemon's error as message
   */
  public static RequestStream open(
      Path socket, Duration timeout, Consumer<String> lines, Runnable ended) throws IOException {
    RequestStream stream = new RequestStream(lines, ended);
    boolean isOpen = false;
    try {
      ControlClient.send(
          stream.loop,
          socket,
          ControlClient.request(HttpMethod.GET, "/requests", Unpooled.EMPTY_BUFFER),
          stream.new Connection(Peer.of(socket)),
          cause ->
              stream.begun.completeExceptionally(new ControlClient.UnreachableException(cause)));
      ControlClient.Answer answer = stream.begun.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
      if (answer.status() != HTTP_OK) {
        throw new IOException(
            answer.status() == HTTP_NOT_FOUND
                ? "its daemon is older than this command: pmfs upgrade"
                : answer.error());
      }
      isOpen = true;
      return stream;
    } catch (ExecutionException e) {
      if (e.getCause() instanceof ControlClient.UnreachableException unreachable) {
        throw unreachable;
      }
      throw new IOException("no answer: " + ControlClient.reason(e.getCause()), e);
    } catch (TimeoutException e) {
      throw new IOException("no answer within " + TimeSpan.format(timeout), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    } finally {
      if (!isOpen) {
        stream.close();
      }
    }
  }

  private final class Connection extends ChannelInitializer<Channel> {
    private final Peer peer;

    Connection(Peer peer) {
      this.peer = peer;
    }

    @Override
    protected void initChannel(Channel channel) {
      channel.pipeline().addLast(peer).addLast(new HttpClientCodec()).addLast(new Handler());
    }
  }

  private final class Handler extends SimpleChannelInboundHandler<HttpObject> {
    private final ByteArrayOutputStream error = new ByteArrayOutputStream();
    private int status;

    @Override
    protected void channelRead0(ChannelHandlerContext context, HttpObject message) {
      if (message instanceof HttpResponse response) {
        status = response.status().code();
        if (status == HTTP_OK) {
          begun.complete(new ControlClient.Answer(status, ""));
        }
      }
      if (message instanceof HttpContent content) {
        take(ByteBufUtil.getBytes(content.content()));
        if (message instanceof LastHttpContent) {
          context.close();
        }
      }
    }

    private void take(byte[] bytes) {
      if (status == HTTP_OK) {
        lines.accept(bytes, 0, bytes.length);
      } else {
        error.write(bytes, 0, Math.min(bytes.length, MAX_ERROR_BYTES - error.size()));
      }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
      if (status == 0) {
        begun.completeExceptionally(new IOException("the daemon closed the connection"));
      }
      begun.complete(new ControlClient.Answer(status, error.toString(UTF_8)));
      ended.run();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
      begun.completeExceptionally(cause);
      context.close();
    }
  }

  @Override
  public void close() {
    loop.shutdownGracefully(0, 1, TimeUnit.SECONDS).awaitUninterruptibly(2, TimeUnit.SECONDS);
  }
}
