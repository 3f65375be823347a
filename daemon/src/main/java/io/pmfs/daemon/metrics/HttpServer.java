package io.pmfs.daemon.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.concurrent.TimeUnit.MILLISECONDS;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOption;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpRequestDecoder;
import io.netty.handler.codec.http.HttpResponseEncoder;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.QueryStringDecoder;
import io.pmfs.daemon.http.HttpReply;
import io.pmfs.daemon.http.HttpSocket;
import io.pmfs.metadata.PathText;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers GET over TCP, one request per connection. Any client may reach the port, so the server is
 * read-only, and hostile clients use bounded memory and time. Close is idempotent.
 */
@SuppressWarnings("FutureReturnValueIgnored") // a channel reports failures to its handlers
public final class HttpServer implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(HttpServer.class);

  private static final int MAX_LINE_BYTES = 2048;
  private static final int MAX_HEAD_BYTES = 8192;
  private static final int MAX_CONNECTIONS = 64;

  /** How long a connection may take to send the head of its request. */
  private static final Duration HEAD_LIMIT = Duration.ofSeconds(2);

  private static final String TEXT = "text/plain; charset=utf-8";

  private final Map<String, HttpContent> contents;
  private final Duration limit;

  /** One worker, so that clients use at most one processor. */
  private final HttpSocket socket = new HttpSocket("metrics", 1, MAX_CONNECTIONS, true);

  private final boolean isLocal;

  /**
   * Listens.
   *
   * @param contents the answers by path
   * @param limit how long a connection may last, from its first byte to the last of its answer
   * @throws IOException if it cannot listen, with only the reason as message
   */
  public HttpServer(InetSocketAddress address, Map<String, HttpContent> contents, Duration limit)
      throws IOException {
    this.contents = Map.copyOf(contents);
    this.limit = limit;
    this.isLocal = address.getAddress().isLoopbackAddress();
    socket.listen(
        new ServerBootstrap()
            .channel(NioServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, MAX_CONNECTIONS)
            .option(ChannelOption.SO_REUSEADDR, true),
        address,
        this::addHandlers);
  }

  /** The address with the actual port. */
  public InetSocketAddress address() {
    return (InetSocketAddress) Objects.requireNonNull(socket.address());
  }

  private void addHandlers(Channel channel) {
    var end = channel.eventLoop().schedule(() -> channel.close(), limit.toMillis(), MILLISECONDS);
    RequestHandler handler = new RequestHandler();
    var head =
        channel
            .eventLoop()
            .schedule(
                () -> {
                  if (!handler.isAsked) {
                    channel.close();
                  }
                },
                HEAD_LIMIT.toMillis(),
                MILLISECONDS);
    channel
        .closeFuture()
        .addListener(
            closed -> {
              end.cancel(false);
              head.cancel(false);
            });
    channel
        .pipeline()
        .addLast(
            new HttpRequestDecoder(
                new HttpDecoderConfig()
                    .setMaxInitialLineLength(MAX_LINE_BYTES)
                    .setMaxHeaderSize(MAX_HEAD_BYTES)))
        .addLast(new HttpResponseEncoder())
        .addLast(handler);
  }

  private final class RequestHandler extends SimpleChannelInboundHandler<HttpObject> {
    private boolean isAsked;

    @Override
    protected void channelRead0(ChannelHandlerContext context, HttpObject message) {
      if (isAsked || !(message instanceof HttpRequest request)) {
        return; // the answer to the first head closes the connection, without waiting for a body
      }
      isAsked = true;
      socket.requested(context.channel());
      boolean withBody = !request.method().equals(HttpMethod.HEAD);
      if (request.decoderResult().isFailure()) {
        error(HttpResponseStatus.BAD_REQUEST, "not an HTTP request").send(context, withBody);
      } else if (!request.method().equals(HttpMethod.GET) && withBody) {
        reply(
                HttpResponseStatus.METHOD_NOT_ALLOWED,
                TEXT,
                Map.of(HttpHeaderNames.ALLOW.toString(), "GET, HEAD"),
                "use GET or HEAD\n")
            .send(context, true);
      } else if (!isMeant(request)) {
        error(HttpResponseStatus.MISDIRECTED_REQUEST, "use localhost or a loopback address")
            .send(context, withBody);
      } else {
        String uri = request.uri();
        socket.work(
            () -> answer(uri).send(context, withBody),
            () ->
                error(HttpResponseStatus.SERVICE_UNAVAILABLE, "too many requests")
                    .send(context, withBody));
      }
    }

    /**
     * On a loopback address, refuses other host names: a foreign page could make its name point to
     * this machine and read what only this machine may read (DNS rebinding).
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

  private static HttpReply error(HttpResponseStatus status, String line) {
    return reply(status, TEXT, Map.of(), line + "\n");
  }

  private static HttpReply reply(
      HttpResponseStatus status, String type, Map<String, String> own, String body) {
    Map<String, String> headers = new LinkedHashMap<>();
    headers.put(HttpHeaderNames.CACHE_CONTROL.toString(), "no-store");
    headers.put("X-Content-Type-Options", "nosniff");
    headers.putAll(own);
    return new HttpReply(status, type, headers, body);
  }

  private HttpReply answer(String uri) {
    try {
      HttpContent content = contents.get(new QueryStringDecoder(uri, UTF_8).path());
      if (content == null) {
        return error(
            HttpResponseStatus.NOT_FOUND,
            "not found: try " + String.join(", ", contents.keySet().stream().sorted().toList()));
      }
      return reply(HttpResponseStatus.OK, content.type(), content.headers(), content.body().call());
    } catch (IllegalArgumentException e) {
      return error(HttpResponseStatus.BAD_REQUEST, "not a path");
    } catch (Exception | Error e) {
      log.error("metrics: {}", PathText.printable(uri), e);
      return error(HttpResponseStatus.INTERNAL_SERVER_ERROR, "see the log");
    }
  }

  @Override
  public void close() {
    socket.close();
  }
}
