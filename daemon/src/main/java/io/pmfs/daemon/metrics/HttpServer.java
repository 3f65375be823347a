package io.pmfs.daemon.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpRequestDecoder;
import io.netty.handler.codec.http.HttpResponseEncoder;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.QueryStringDecoder;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers GET over TCP, one request for each connection. Whoever reaches the port may ask: so it
 * only tells, and whatever a client sends or does not read takes bounded memory and time. Closing
 * it is idempotent.
 */
@SuppressWarnings("FutureReturnValueIgnored") // what fails on a channel comes to its handlers
public final class HttpServer implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(HttpServer.class);

  private static final int MAX_LINE_BYTES = 2048;
  private static final int MAX_HEAD_BYTES = 8192;
  private static final int MAX_CONNECTIONS = 64;
  private static final int MAX_WAITING = 32;
  private static final int CLOSE_SECONDS = 2;

  private final Map<String, HttpContent> contents;
  private final Duration limit;
  private final ChannelGroup connections = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
  private final EventLoopGroup loop =
      new MultiThreadIoEventLoopGroup(
          1, new DefaultThreadFactory("metrics-io", true), NioIoHandler.newFactory());

  /** One: whoever asks too much waits for itself, and takes one processor at most. */
  private final ThreadPoolExecutor worker =
      new ThreadPoolExecutor(
          1,
          1,
          0,
          TimeUnit.SECONDS,
          new ArrayBlockingQueue<>(MAX_WAITING),
          new DefaultThreadFactory("metrics", true));

  private final Channel listener;
  private final boolean isLocal;

  /**
   * Listens.
   *
   * @param contents by path
   * @param limit how long a connection may last, from its first byte to the last of its answer
   * @throws IOException with the reason alone, if it cannot listen there
   */
  public HttpServer(InetSocketAddress address, Map<String, HttpContent> contents, Duration limit)
      throws IOException {
    this.contents = Map.copyOf(contents);
    this.limit = limit;
    this.isLocal = address.getAddress().isLoopbackAddress();
    var bound =
        new ServerBootstrap()
            .group(loop)
            .channel(NioServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, MAX_CONNECTIONS)
            .option(ChannelOption.SO_REUSEADDR, true)
            .childHandler(new Connection())
            .bind(address)
            .awaitUninterruptibly();
    listener = bound.channel();
    if (!bound.isSuccess()) {
      close();
      throw new IOException(bound.cause().getMessage(), bound.cause());
    }
  }

  /** Where it listens; the port is a real one. */
  public InetSocketAddress address() {
    return (InetSocketAddress) listener.localAddress();
  }

  private final class Connection extends ChannelInitializer<Channel> {
    @Override
    protected void initChannel(Channel channel) {
      if (connections.size() >= MAX_CONNECTIONS) {
        channel.close();
        return;
      }
      connections.add(channel);
      var end =
          channel
              .eventLoop()
              .schedule(() -> channel.close(), limit.toMillis(), TimeUnit.MILLISECONDS);
      channel.closeFuture().addListener(closed -> end.cancel(false));
      channel
          .pipeline()
          .addLast(
              new HttpRequestDecoder(
                  new HttpDecoderConfig()
                      .setMaxInitialLineLength(MAX_LINE_BYTES)
                      .setMaxHeaderSize(MAX_HEAD_BYTES)))
          .addLast(new HttpResponseEncoder())
          .addLast(new RequestHandler());
    }
  }

  private final class RequestHandler extends SimpleChannelInboundHandler<HttpObject> {
    private boolean isAsked;

    @Override
    protected void channelRead0(ChannelHandlerContext context, HttpObject message) {
      if (isAsked || !(message instanceof HttpRequest request)) {
        return; // the answer to the first head closes the connection; bodies are not waited for
      }
      isAsked = true;
      boolean withBody = !request.method().equals(HttpMethod.HEAD);
      if (request.decoderResult().isFailure()) {
        respond(context, withBody, error(HttpResponseStatus.BAD_REQUEST, "not an HTTP request"));
      } else if (!request.method().equals(HttpMethod.GET) && withBody) {
        Answer refusal = error(HttpResponseStatus.METHOD_NOT_ALLOWED, "only GET is answered");
        respond(context, true, refusal.with(HttpHeaderNames.ALLOW.toString(), "GET, HEAD"));
      } else if (!isMeant(request)) {
        respond(
            context,
            withBody,
            error(HttpResponseStatus.MISDIRECTED_REQUEST, "ask by a name of this machine itself"));
      } else {
        String uri = request.uri();
        try {
          worker.execute(() -> respond(context, withBody, answer(uri)));
        } catch (RejectedExecutionException e) {
          respond(
              context,
              withBody,
              error(HttpResponseStatus.SERVICE_UNAVAILABLE, "too many requests"));
        }
      }
    }

    /**
     * A page of elsewhere whose name was made to mean this machine may not read what only this
     * machine may ask for (DNS rebinding).
     */
    private boolean isMeant(HttpRequest request) {
      String host = request.headers().get(HttpHeaderNames.HOST);
      return !isLocal
          || host == null
          || host.matches("(?i)(localhost|127(\\.\\d{1,3}){3}|\\[::1])(:\\d{1,5})?");
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
      log.debug("metrics connection: {}", cause.toString());
      context.close();
    }
  }

  /** What is sent. */
  private record Answer(
      HttpResponseStatus status, String type, Map<String, String> headers, String body) {
    Answer with(String header, String value) {
      return new Answer(status, type, Map.of(header, value), body);
    }
  }

  private static Answer error(HttpResponseStatus status, String line) {
    return new Answer(status, "text/plain; charset=utf-8", Map.of(), line + "\n");
  }

  private Answer answer(String uri) {
    try {
      HttpContent content = contents.get(new QueryStringDecoder(uri, UTF_8).path());
      if (content == null) {
        return error(
            HttpResponseStatus.NOT_FOUND,
            "not here: try " + String.join(", ", contents.keySet().stream().sorted().toList()));
      }
      return new Answer(
          HttpResponseStatus.OK, content.type(), content.headers(), content.body().call());
    } catch (IllegalArgumentException e) {
      return error(HttpResponseStatus.BAD_REQUEST, "not a path");
    } catch (Exception e) {
      log.error("metrics: {}", uri.replaceAll("\\p{Cntrl}", "?"), e);
      return error(HttpResponseStatus.INTERNAL_SERVER_ERROR, "see the log");
    }
  }

  private static void respond(ChannelHandlerContext context, boolean withBody, Answer answer) {
    byte[] body = answer.body().getBytes(UTF_8);
    DefaultFullHttpResponse response =
        new DefaultFullHttpResponse(
            HttpVersion.HTTP_1_1,
            answer.status(),
            withBody ? Unpooled.wrappedBuffer(body) : Unpooled.EMPTY_BUFFER);
    response
        .headers()
        .set(HttpHeaderNames.CONTENT_TYPE, answer.type())
        .setInt(HttpHeaderNames.CONTENT_LENGTH, body.length)
        .set(HttpHeaderNames.CONNECTION, "close")
        .set(HttpHeaderNames.CACHE_CONTROL, "no-store")
        .set("X-Content-Type-Options", "nosniff");
    answer.headers().forEach(response.headers()::set);
    context.writeAndFlush(response).addListener(ChannelFutureListener.CLOSE);
  }

  @Override
  public void close() {
    if (listener != null) {
      listener.close().awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
    }
    connections.close().awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
    worker.shutdownNow();
    loop.shutdownGracefully(0, 1, TimeUnit.SECONDS)
        .awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
  }
}
