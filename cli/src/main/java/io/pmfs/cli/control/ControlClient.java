package io.pmfs.cli.control;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioDomainSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpRequest;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpRequest;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpClientCodec;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.machine.TimeSpan;
import java.io.IOException;
import java.io.OutputStream;
import java.net.UnixDomainSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Sends single requests to a daemon over its control socket. */
@SuppressWarnings("FutureReturnValueIgnored") // a channel's handlers get its failures
public final class ControlClient {
  private static final int MAX_ANSWER_BYTES = 16 << 20;

  /** The limit for an answer of another user's daemon. */
  private static final int MAX_BYTES_OF_A_STRANGER = 128 << 10;

  private static final Duration REFUSAL_LIMIT = Duration.ofSeconds(10);

  /** The daemon's answer: an HTTP status and JSON. */
  public record Answer(int status, String body) {
    /** The daemon's error message. */
    public String error() {
      try {
        if (JsonParser.parseString(body) instanceof JsonObject object
            && object.get("error") != null) {
          return object.get("error").getAsString();
        }
      } catch (JsonParseException | IllegalStateException | UnsupportedOperationException e) {
        // Not JSON of pmfs: only the status is known.
      }
      return "the daemon answered with status " + status;
    }
  }

  /** The daemon was not reached and has received no request. */
  public static final class UnreachableException extends IOException {
    UnreachableException(@Nullable Throwable cause) {
      super("no answer: " + reason(cause), cause);
    }
  }

  private ControlClient() {}

  /** Throws IOException if no daemon listens, or the answer is malformed or late. */
  public static Answer ask(Path socket, HttpMethod method, String uri, Duration timeout)
      throws IOException {
    return ask(socket, method, uri, Unpooled.EMPTY_BUFFER, timeout);
  }

  /** Sends {@code body}, which is released. */
  static Answer ask(Path socket, HttpMethod method, String uri, ByteBuf body, Duration timeout)
      throws IOException {
    EventLoopGroup loop = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
    try {
      CompletableFuture<Answer> answer = new CompletableFuture<>();
      send(
          loop,
          socket,
          request(method, uri, body),
          new Connection(answer, Peer.of(socket)),
          cause -> answer.completeExceptionally(new UnreachableException(cause)));
      return await(answer, timeout);
    } finally {
      loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }
  }

  private static Answer await(CompletableFuture<Answer> answer, Duration timeout)
      throws IOException {
    try {
      return answer.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof UnreachableException unreachable) {
        throw unreachable;
      }
      throw new IOException("no answer: " + reason(e.getCause()), e);
    } catch (TimeoutException e) {
      throw new IOException("no answer within " + TimeSpan.format(timeout), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    }
  }

  /** Produces a body of any length while it is sent. */
  interface Body {
    /** Writes the body; false cancels the request. */
    boolean writeTo(OutputStream out) throws IOException, MountFailure;
  }

  /**
   * Posts a body of any length. If the daemon answers before it has read all of the body, the rest
   * is not sent.
   *
   * @return null if the body cancelled the request
   */
  static @Nullable Answer post(
      Path socket, String uri, String contentType, Body body, Duration timeout)
      throws IOException, MountFailure {
    EventLoopGroup loop = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
    try {
      CompletableFuture<Answer> answer = new CompletableFuture<>();
      Channel channel = connect(loop, socket, new Connection(answer, Peer.of(socket)), timeout);
      DefaultHttpRequest request =
          new DefaultHttpRequest(HttpVersion.HTTP_1_1, HttpMethod.POST, uri);
      request.headers().set(HttpHeaderNames.HOST, "pmfs");
      request.headers().set(HttpHeaderNames.CONNECTION, "close");
      request.headers().set(HttpHeaderNames.CONTENT_TYPE, contentType);
      request.headers().set(HttpHeaderNames.TRANSFER_ENCODING, HttpHeaderValues.CHUNKED);
      ChunkStream out = new ChunkStream(channel, answer, timeout);
      try {
        out.send(request);
        if (!body.writeTo(out)) {
          channel.close();
          return null;
        }
        out.flush();
        out.send(LastHttpContent.EMPTY_LAST_CONTENT);
      } catch (ChunkStream.RefusedException e) {
        // The answer, if any, has the reason.
        return await(answer, REFUSAL_LIMIT);
      } catch (IOException | MountFailure e) {
        channel.close();
        throw e;
      }
      return await(answer, timeout);
    } finally {
      loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }
  }

  private static Channel connect(
      EventLoopGroup loop, Path socket, ChannelHandler handler, Duration timeout)
      throws IOException {
    var connected =
        new Bootstrap()
            .group(loop)
            .channel(NioDomainSocketChannel.class)
            // Reads the answer even after the daemon stopped reading.
            .option(ChannelOption.AUTO_CLOSE, false)
            .handler(handler)
            .connect(UnixDomainSocketAddress.of(socket));
    if (!connected.awaitUninterruptibly(timeout.toMillis()) || !connected.isSuccess()) {
      throw new UnreachableException(connected.cause());
    }
    return connected.channel();
  }

  /** Sends the written bytes as chunks of a request, one at a time. */
  private static final class ChunkStream extends OutputStream {
    private static final int CHUNK_BYTES = 64 << 10;

    private final Channel channel;
    private final CompletableFuture<Answer> answer;
    private final Duration timeout;
    private final byte[] chunk = new byte[CHUNK_BYTES];
    private int size;

    ChunkStream(Channel channel, CompletableFuture<Answer> answer, Duration timeout) {
      this.channel = channel;
      this.answer = answer;
      this.timeout = timeout;
    }

    /** The daemon accepts no more of the body. */
    private static final class RefusedException extends IOException {
      RefusedException(String message, @Nullable Throwable cause) {
        super(message, cause);
      }
    }

    @Override
    public void write(int b) throws IOException {
      write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int offset, int count) throws IOException {
      for (int done = 0; done < count; ) {
        int more = Math.min(count - done, chunk.length - size);
        System.arraycopy(bytes, offset + done, chunk, size, more);
        size += more;
        done += more;
        if (size == chunk.length) {
          flush();
        }
      }
    }

    @Override
    public void flush() throws IOException {
      if (size > 0) {
        int count = size;
        size = 0;
        send(new DefaultHttpContent(Unpooled.copiedBuffer(chunk, 0, count)));
      }
    }

    void send(Object part) throws IOException {
      if (answer.isDone()) {
        throw new RefusedException("answered before the end", null);
      }
      var sent = channel.writeAndFlush(part);
      if (!sent.awaitUninterruptibly(timeout.toMillis())) {
        throw new IOException("no answer within " + TimeSpan.format(timeout));
      }
      if (!sent.isSuccess()) {
        throw new RefusedException(reason(sent.cause()), sent.cause());
      }
    }
  }

  /** Sends a request, which is released, over a new connection. */
  static void send(
      EventLoopGroup loop,
      Path socket,
      FullHttpRequest request,
      ChannelHandler handler,
      Consumer<Throwable> failed) {
    new Bootstrap()
        .group(loop)
        .channel(NioDomainSocketChannel.class)
        .handler(handler)
        .connect(UnixDomainSocketAddress.of(socket))
        .addListener(
            (ChannelFutureListener)
                connected -> {
                  if (connected.isSuccess()) {
                    connected.channel().writeAndFlush(request);
                  } else {
                    request.release();
                    failed.accept(connected.cause());
                  }
                });
  }

  static String reason(@Nullable Throwable cause) {
    return cause instanceof Exception e ? Reason.of(e) : String.valueOf(cause);
  }

  static FullHttpRequest request(HttpMethod method, String uri, ByteBuf body) {
    DefaultFullHttpRequest request =
        new DefaultFullHttpRequest(HttpVersion.HTTP_1_1, method, uri, body);
    request.headers().set(HttpHeaderNames.HOST, "pmfs");
    request.headers().set(HttpHeaderNames.CONNECTION, "close");
    request.headers().setInt(HttpHeaderNames.CONTENT_LENGTH, body.readableBytes());
    return request;
  }

  private static final class Connection extends ChannelInitializer<Channel> {
    private final CompletableFuture<Answer> answer;
    private final Peer peer;

    Connection(CompletableFuture<Answer> answer, Peer peer) {
      this.answer = answer;
      this.peer = peer;
    }

    @Override
    protected void initChannel(Channel channel) {
      int most = peer.isStranger() ? MAX_BYTES_OF_A_STRANGER : MAX_ANSWER_BYTES;
      channel
          .pipeline()
          .addLast(peer)
          .addLast(new HttpClientCodec())
          .addLast(new HttpObjectAggregator(most))
          .addLast(new AnswerHandler(answer));
    }
  }

  private static final class AnswerHandler extends SimpleChannelInboundHandler<FullHttpResponse> {
    private final CompletableFuture<Answer> answer;

    AnswerHandler(CompletableFuture<Answer> answer) {
      this.answer = answer;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, FullHttpResponse response) {
      answer.complete(new Answer(response.status().code(), response.content().toString(UTF_8)));
      context.close();
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
      answer.completeExceptionally(new IOException("the daemon closed the connection"));
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
      answer.completeExceptionally(cause);
      context.close();
    }
  }
}
