package io.pmfs.cli;

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
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioDomainSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpRequest;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpClientCodec;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpVersion;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Asks a daemon one thing over its control socket. */
@SuppressWarnings("FutureReturnValueIgnored") // what fails on a channel comes to its handlers
final class ControlClient {
  private static final int MAX_ANSWER_BYTES = 16 << 20;

  /** The daemon's answer: an HTTP status and JSON. */
  record Answer(int status, String body) {
    /** What the daemon says went wrong. */
    String error() {
      try {
        if (JsonParser.parseString(body) instanceof JsonObject object
            && object.get("error") != null) {
          return object.get("error").getAsString();
        }
      } catch (JsonParseException | IllegalStateException | UnsupportedOperationException e) {
        // Not our JSON: the status has to do.
      }
      return "the daemon answered with status " + status;
    }
  }

  private ControlClient() {}

  /** Throws IOException when nobody listens, the answer is broken, or none came in time. */
  static Answer ask(Path socket, HttpMethod method, String uri, Duration timeout)
      throws IOException {
    return ask(socket, method, uri, Unpooled.EMPTY_BUFFER, timeout);
  }

  /** The same with a body, which is released. */
  static Answer ask(Path socket, HttpMethod method, String uri, ByteBuf body, Duration timeout)
      throws IOException {
    EventLoopGroup loop = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
    try {
      CompletableFuture<Answer> answer = new CompletableFuture<>();
      send(
          loop,
          socket,
          request(method, uri, body),
          new Connection(answer),
          answer::completeExceptionally);
      return answer.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
    } catch (ExecutionException e) {
      throw new IOException("no answer: " + reason(e.getCause()), e);
    } catch (TimeoutException e) {
      throw new IOException("no answer within " + TimeSpan.format(timeout), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    } finally {
      loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }
  }

  /** Sends a request, which is released, over a connection of its own. */
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

    Connection(CompletableFuture<Answer> answer) {
      this.answer = answer;
    }

    @Override
    protected void initChannel(Channel channel) {
      channel
          .pipeline()
          .addLast(new HttpClientCodec())
          .addLast(new HttpObjectAggregator(MAX_ANSWER_BYTES))
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
