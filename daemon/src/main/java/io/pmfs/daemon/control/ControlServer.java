package io.pmfs.daemon.control;

import static io.netty.handler.codec.http.HttpMethod.GET;
import static io.netty.handler.codec.http.HttpMethod.POST;
import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.socket.nio.NioServerDomainSocketChannel;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.QueryStringDecoder;
import io.netty.handler.timeout.ReadTimeoutHandler;
import io.netty.handler.timeout.WriteTimeoutHandler;
import io.pmfs.daemon.http.HttpReply;
import io.pmfs.daemon.http.HttpSocket;
import io.pmfs.daemon.metrics.Metrics;
import io.pmfs.daemon.process.Version;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.ThreadDump;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.tasks.Drains;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.machine.TimeSpan;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PathText;
import io.pmfs.posix.DaemonPool;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers HTTP with JSON on a Unix-domain socket: {@code GET /status?all-nodes=true}, {@code GET
 * /version}, {@code GET /configuration}, {@code GET /threads}, {@code GET /metrics}, {@code GET
 * /requests}, {@code POST /mount?mountpoint=/mnt/x&timeout=30s}, {@code POST
 * /umount?lazy=true&purge=true}, {@code POST /upgrade}, {@code /drain}, and {@link TaskResource}.
 * Each connection carries one request.
 */
@SuppressWarnings("FutureReturnValueIgnored") // a channel reports failures to its handlers
public final class ControlServer implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(ControlServer.class);
  private static final int MAX_REQUEST_BYTES = 64 << 10;
  private static final int TIMEOUT_SECONDS = 10;
  private static final int WORKERS = 2;

  /** Lists of paths that may arrive at once; tasks run one at a time. */
  private static final int MAX_LISTS = 4;

  private static final String JSON = "application/json; charset=utf-8";
  private static final String TEXT = "text/plain; charset=utf-8";
  private static final String ALL_NODES = "all-nodes";

  /** The error for a request that needs a cluster. */
  public static final String NO_CLUSTER =
      "this mount is not in a cluster; pmfs mount --cluster NAME joins one";

  /** The error for a request that needs a writable mount. */
  public static final String READ_ONLY =
      "this mount is read-only, so no changes wait for the source";

  private static final Gson GSON =
      new GsonBuilder().disableHtmlEscaping().serializeNulls().create();

  private final Path socket;
  private final ControlRequests requests;
  private final HttpSocket http = new HttpSocket("control", WORKERS, Integer.MAX_VALUE, false);
  private final Set<RequestFeed> feeds = ConcurrentHashMap.newKeySet();

  /** Writes lists to their files. The disk may hang, so no other request uses this thread. */
  private final DaemonPool lists;

  private final Semaphore listPlaces = new Semaphore(MAX_LISTS);

  private ControlServer(Path socket, ControlRequests requests) throws IOException {
    this.socket = socket;
    this.requests = requests;
    lists = new DaemonPool(1, "control-list");
    try {
      http.listen(
          new ServerBootstrap().channel(NioServerDomainSocketChannel.class),
          UnixDomainSocketAddress.of(socket),
          this::addHandlers);
    } catch (IOException e) {
      lists.shutdown();
      throw new IOException(socket + ": " + e.getMessage(), e.getCause());
    }
  }

  /** Listens on a new socket that only this user may connect to. */
  public static ControlServer start(Path socket, ControlRequests requests) throws IOException {
    ControlServer server = begin(socket, requests);
    try {
      // The directory is 0700, so no other user can connect between bind and this call.
      Files.setPosixFilePermissions(socket, PosixFilePermissions.fromString("rw-------"));
      return server;
    } catch (IOException e) {
      server.close();
      throw e;
    }
  }

  private static ControlServer begin(Path socket, ControlRequests requests) throws IOException {
    try {
      return new ControlServer(socket, requests);
    } catch (OutOfMemoryError e) {
      throw new IOException(socket + ": no thread can answer: " + e.getMessage(), e);
    }
  }

  public Path socket() {
    return socket;
  }

  private void addHandlers(Channel channel) {
    channel
        .pipeline()
        .addLast("slow-sender", new ReadTimeoutHandler(TIMEOUT_SECONDS))
        .addLast(new WriteTimeoutHandler(TIMEOUT_SECONDS))
        .addLast(new HttpServerCodec())
        .addLast(new BodyLimit())
        .addLast(new RequestHandler());
  }

  /** Limits the size of a body; tasks may have large ones. */
  private final class BodyLimit extends ChannelInboundHandlerAdapter {
    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
      boolean mayBeLarge =
          message instanceof HttpRequest request && request.uri().equals(TaskResource.PATH);
      if (message instanceof HttpRequest request && mayBeLarge && hasList(request)) {
        receiveList(context, request);
        return;
      }
      context
          .pipeline()
          .addAfter(
              context.name(),
              null,
              new HttpObjectAggregator(
                  mayBeLarge ? TaskResource.MAX_REQUEST_BYTES : MAX_REQUEST_BYTES));
      context.fireChannelRead(message);
      context.pipeline().remove(this); // later chunks belong to this request
    }
  }

  private static boolean hasList(HttpRequest request) {
    return request.method().equals(POST)
        && TaskResource.LIST_TYPE.equals(request.headers().get(HttpHeaderNames.CONTENT_TYPE));
  }

  private void receiveList(ChannelHandlerContext context, HttpRequest request) {
    if (!listPlaces.tryAcquire()) {
      send(
          context,
          ControlAnswer.error(
              HttpResponseStatus.SERVICE_UNAVAILABLE, "too many lists of paths at once"));
      return;
    }
    context.channel().closeFuture().addListener(closed -> listPlaces.release());
    // The sender may be as slow as the find(1) that makes the list.
    context.pipeline().remove("slow-sender");
    TaskResource resource = new TaskResource(requests.tasks());
    ListReceiver receiver = new ListReceiver(resource, lists, ControlServer::send);
    String name = context.name();
    context.pipeline().addAfter(name, "list", receiver);
    context.fireChannelRead(request);
    context.pipeline().remove(name); // later chunks belong to this request
  }

  private final class RequestHandler extends SimpleChannelInboundHandler<FullHttpRequest> {
    @Override
    protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
      if (context.pipeline().get("slow-sender") == null) {
        return; // a second request: the answer to the first one closes the connection
      }
      context.pipeline().remove("slow-sender");
      if (request.decoderResult().isFailure()) {
        respond(
            context, ControlAnswer.error(HttpResponseStatus.BAD_REQUEST, "not an HTTP request"));
        return;
      }
      HttpMethod method = request.method();
      String uri = request.uri();
      ByteBuf body = request.content().retain();
      http.work(
          () -> {
            try {
              respond(context, answer(method, uri, body));
            } finally {
              body.release();
            }
          },
          () -> {
            body.release();
            respond(
                context,
                ControlAnswer.error(HttpResponseStatus.SERVICE_UNAVAILABLE, "too many requests"));
          });
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
      log.debug("control connection: {}", cause.toString());
      context.close();
    }
  }

  private ControlAnswer answer(HttpMethod method, String uri, ByteBuf body) {
    try {
      QueryStringDecoder query = new QueryStringDecoder(uri, UTF_8);
      return switch (query.path()) {
        case "/status" -> only(GET, method, () -> status(query.parameters()));
        case "/metrics" ->
            only(
                GET,
                method,
                () ->
                    ControlAnswer.ok(
                        new ControlAnswer.Text(Metrics.CONTENT_TYPE, requests.metrics())));
        case "/requests" -> only(GET, method, this::requests);
        case "/version" ->
            only(
                GET,
                method,
                () ->
                    ControlAnswer.ok(
                        Map.of("version", Version.get(), "pid", ProcessHandle.current().pid())));
        case "/configuration" ->
            only(GET, method, () -> ControlAnswer.ok(requests.configuration()));
        case "/threads" ->
            only(
                GET,
                method,
                () -> ControlAnswer.ok(new ControlAnswer.Text(TEXT, ThreadDump.now())));
        case "/upgrade" ->
            only(
                POST,
                method,
                () -> {
                  requests.upgrade();
                  return ControlAnswer.ok(
                      Map.of("upgrading", true, "pid", ProcessHandle.current().pid()));
                });
        case "/mount" -> only(POST, method, () -> mount(query.parameters()));
        case "/umount" -> only(POST, method, () -> unmount(query.parameters()));
        case "/drain" -> drain(method, query.parameters());
        case "/acknowledge" -> only(POST, method, this::acknowledge);
        case "/retry" -> only(POST, method, () -> refused(query.parameters(), Drains::retry));
        case "/drop" -> only(POST, method, () -> refused(query.parameters(), Drains::drop));
        default ->
            query.path().startsWith(TaskResource.PATH)
                ? new TaskResource(requests.tasks()).answer(method, query, body)
                : ControlAnswer.error(
                    HttpResponseStatus.NOT_FOUND,
                    query.path()
                        + ": try /status, /metrics, /requests, /version, /configuration, /threads,"
                        + " /tasks, /drain, /acknowledge, /retry, /drop, /mount, /umount or"
                        + " /upgrade");
      };
    } catch (MountFailure e) {
      return ControlAnswer.error(status(e), e.line());
    } catch (IllegalArgumentException e) {
      return ControlAnswer.error(HttpResponseStatus.BAD_REQUEST, String.valueOf(e.getMessage()));
    } catch (RuntimeException | Error e) {
      log.error("{} {}", method, uri, e);
      return ControlAnswer.error(HttpResponseStatus.INTERNAL_SERVER_ERROR, e.toString());
    }
  }

  private static HttpResponseStatus status(MountFailure e) {
    if (e.isBusy()) {
      return HttpResponseStatus.CONFLICT;
    }
    return switch (e.exitStatus()) {
      case ExitStatus.CANNOT -> HttpResponseStatus.NOT_IMPLEMENTED;
      case ExitStatus.IN_USE -> HttpResponseStatus.SERVICE_UNAVAILABLE;
      default -> HttpResponseStatus.INTERNAL_SERVER_ERROR;
    };
  }

  private interface Action {
    ControlAnswer run() throws MountFailure;
  }

  private static ControlAnswer only(HttpMethod allowed, HttpMethod method, Action action)
      throws MountFailure {
    if (method.equals(allowed)) {
      return action.run();
    }
    return ControlAnswer.wrongMethod(method, allowed.name());
  }

  private ControlAnswer status(Map<String, List<String>> parameters) {
    check(parameters, ALL_NODES);
    if (!flag(parameters, ALL_NODES)) {
      return ControlAnswer.ok(requests.status());
    }
    try {
      NodesReport nodes = requests.nodes();
      return nodes == null
          ? ControlAnswer.error(HttpResponseStatus.NOT_FOUND, NO_CLUSTER)
          : ControlAnswer.ok(nodes);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return ControlAnswer.error(HttpResponseStatus.SERVICE_UNAVAILABLE, "stopping");
    }
  }

  private static String parameter(Map<String, List<String>> parameters, String name) {
    List<String> values = parameters.getOrDefault(name, List.of());
    if (values.size() != 1) {
      throw new IllegalArgumentException(name + ": give one value");
    }
    return values.get(0);
  }

  private ControlAnswer requests() {
    RequestLog log = requests.requests();
    return log == null
        ? ControlAnswer.error(HttpResponseStatus.NOT_FOUND, "this mount does not record requests")
        : ControlAnswer.ok(log);
  }

  private static void check(Map<String, List<String>> parameters, String... known) {
    for (String name : parameters.keySet()) {
      if (!List.of(known).contains(name)) {
        throw new IllegalArgumentException(
            "unknown parameter " + name + ": try " + String.join(" or ", known));
      }
    }
  }

  /** The socket is private to this user, and the daemon mounts only what this user may. */
  private ControlAnswer mount(Map<String, List<String>> parameters) throws MountFailure {
    check(parameters, "mountpoint", "timeout");
    Path mountpoint = Path.of(parameter(parameters, "mountpoint"));
    if (!mountpoint.isAbsolute() || !mountpoint.equals(mountpoint.normalize())) {
      throw new IllegalArgumentException("mountpoint: give an absolute path without . and ..");
    }
    String device =
        requests.join(mountpoint, TimeSpan.parsePositive(parameter(parameters, "timeout")));
    return ControlAnswer.ok(
        Map.of("device", String.valueOf(device), "pid", ProcessHandle.current().pid()));
  }

  private ControlAnswer unmount(Map<String, List<String>> parameters) throws MountFailure {
    check(parameters, "lazy", "purge", "abandon", "device");
    String device = parameters.containsKey("device") ? parameter(parameters, "device") : null;
    if (device != null && !requests.serves(device)) {
      return ControlAnswer.error(
          HttpResponseStatus.GONE, device + ": not a session of this daemon, or no longer");
    }
    requests.unmount(
        flag(parameters, "lazy"), flag(parameters, "purge"), flag(parameters, "abandon"));
    return ControlAnswer.ok(Map.of("unmounted", true, "pid", ProcessHandle.current().pid()));
  }

  /** POST starts a drain, GET reports it, DELETE cancels it. */
  private ControlAnswer drain(HttpMethod method, Map<String, List<String>> parameters) {
    Drains drains = requests.drains();
    if (drains == null) {
      return ControlAnswer.error(HttpResponseStatus.NOT_FOUND, READ_ONLY);
    }
    if (method.equals(POST)) {
      check(parameters);
      try {
        return ControlAnswer.ok(drains.start());
      } catch (IllegalStateException e) {
        return ControlAnswer.error(
            HttpResponseStatus.SERVICE_UNAVAILABLE, String.valueOf(e.getMessage()));
      }
    }
    check(parameters, "id");
    long id = Long.parseLong(parameter(parameters, "id"));
    if (method.equals(HttpMethod.DELETE)) {
      drains.cancel(id);
      return ControlAnswer.ok(Map.of("cancelled", true));
    }
    if (!method.equals(GET)) {
      return ControlAnswer.wrongMethod(method, "GET, POST, DELETE");
    }
    Drains.Report report = drains.find(id);
    return report == null
        ? ControlAnswer.error(
            HttpResponseStatus.GONE, "this daemon does not know the drain; start it again")
        : ControlAnswer.ok(report);
  }

  private ControlAnswer acknowledge() {
    Drains drains = requests.drains();
    if (drains == null) {
      return ControlAnswer.error(HttpResponseStatus.NOT_FOUND, READ_ONLY);
    }
    try {
      return ControlAnswer.ok(drains.acknowledge());
    } catch (FsException e) {
      return ControlAnswer.error(
          HttpResponseStatus.INTERNAL_SERVER_ERROR, "state: " + Reason.of(e));
    }
  }

  /** An action on the changes at and below a path that the source refused. */
  private interface Doing {
    Drains.Changes at(Drains drains, FileName path) throws FsException;
  }

  private ControlAnswer refused(Map<String, List<String>> parameters, Doing doing) {
    check(parameters, "path");
    Drains drains = requests.drains();
    if (drains == null) {
      return ControlAnswer.error(HttpResponseStatus.NOT_FOUND, READ_ONLY);
    }
    String path = String.join("", parameters.getOrDefault("path", List.of("")));
    try {
      return ControlAnswer.ok(doing.at(drains, PathText.decode(path)));
    } catch (FsException e) {
      return ControlAnswer.error(HttpResponseStatus.SERVICE_UNAVAILABLE, Reason.of(e));
    }
  }

  private static boolean flag(Map<String, List<String>> parameters, String name) {
    List<String> values = parameters.getOrDefault(name, List.of("false"));
    String value = values.get(0);
    if (values.size() != 1 || !Set.of("true", "false").contains(value)) {
      throw new IllegalArgumentException(name + ": give true or false");
    }
    return value.equals("true");
  }

  private void respond(ChannelHandlerContext context, ControlAnswer answer) {
    if (answer.body() instanceof RequestLog log) {
      stream(context, log);
    } else {
      send(context, answer);
    }
  }

  /** Sends lines until the client disconnects. */
  private void stream(ChannelHandlerContext context, RequestLog log) {
    RequestFeed feed = new RequestFeed(context.channel(), log);
    feeds.add(feed);
    context.channel().closeFuture().addListener(closed -> feeds.remove(feed));
    if (!feed.begin()) {
      send(
          context,
          ControlAnswer.error(
              HttpResponseStatus.SERVICE_UNAVAILABLE,
              RequestLog.MOST_READERS + " profiles of this mount are being made; end one of them"));
    }
  }

  private static void send(ChannelHandlerContext context, ControlAnswer answer) {
    ControlAnswer.Text text =
        answer.body() instanceof ControlAnswer.Text given
            ? given
            : new ControlAnswer.Text(JSON, GSON.toJson(answer.body()) + "\n");
    Map<String, String> headers =
        answer.allow() == null
            ? Map.of()
            : Map.of(HttpHeaderNames.ALLOW.toString(), answer.allow());
    new HttpReply(answer.status(), text.type(), headers, text.text()).send(context, true);
  }

  /** Stops listening. Requests in progress have two seconds to get their answer. */
  @Override
  public void close() {
    http.stopListening();
    feeds.forEach(RequestFeed::end);
    http.finish();
    lists.shutdown();
    http.close();
  }
}
