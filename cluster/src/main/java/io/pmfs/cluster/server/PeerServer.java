package io.pmfs.cluster.server;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultHttpHeadersFactory;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpRequestDecoder;
import io.netty.handler.codec.http.HttpResponseEncoder;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.GlobalEventExecutor;
import io.pmfs.cluster.peers.HttpLimits;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.cluster.peers.PeerTls;
import io.pmfs.cluster.peers.Refusal;
import io.pmfs.cluster.peers.RequestSignature;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves a {@link PeerService} to peers over HTTP; docs/formats.md, Peers, describes the protocol.
 * Event loops read requests; separate workers answer requests for names, for content and of
 * writable mounts. Memory and time for any input are bounded. Thread-safe.
 */
@SuppressWarnings("FutureReturnValueIgnored") // a channel reports failures to its handlers
public final class PeerServer implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(PeerServer.class);
  private static final int EVENT_LOOPS = 2;
  private static final int CLOSE_SECONDS = 5;

  /** Nodes address each other by IP address: anyone can point a name at this machine. */
  private static final Pattern ADDRESS =
      Pattern.compile("(\\d{1,3}(\\.\\d{1,3}){3}|\\[[0-9A-Fa-f:.]+])(:\\d{1,5})?");

  /** A quarter as many workers serve copy-only requests. */
  private static final int COPY_WORKERS_PART = 4;

  /**
   * So many times as many workers as for names serve a writable mount: 1,024, for eight nodes with
   * all their requests waiting for the source.
   */
  private static final int OUTPUT_WORKERS_TIMES = 4;

  /** Interrupts wait for nothing. */
  private static final int INTERRUPT_WORKERS = 4;

  /**
   * The kernel's send buffer for an answer; a block counts as sent when most of it is in that
   * buffer. Far more than a round trip's worth on a network of 100 Gbit/s.
   */
  private static final int SEND_BUFFER_BYTES = 512 << 10;

  private static final long TICKS_PER_LIMIT = 4;

  /** As long as unmounting waits for an unresponsive source. */
  private static final int WORKERS_SECONDS = 30;

  private final PeerLimits limits;
  private final PeerCounters counters = new PeerCounters();
  private final RequestSignature signature;
  private final @Nullable PeerTls tls;
  private final PeerResponder responder;
  private final Workers names;
  private final Workers data;
  private final Workers copies;
  private final Workers outputs;
  private final Workers interrupts;
  private final EventLoopGroup loops =
      new MultiThreadIoEventLoopGroup(
          EVENT_LOOPS,
          new DefaultThreadFactory("pmfs-peer-server", true),
          NioIoHandler.newFactory());
  private final ChannelGroup channels = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
  private final Map<InetAddress, Integer> addresses = new ConcurrentHashMap<>();

  /**
   * The connections of each event loop, used by that loop only. One timer checks all of them,
   * because each timer keeps an event loop busy for up to half a millisecond.
   */
  private final Map<EventExecutor, Map<PeerConnection, ChannelHandlerContext>> connections =
      new ConcurrentHashMap<>();

  private final AtomicBoolean closed = new AtomicBoolean();
  private final InetSocketAddress address;

  /**
   * Starts to listen.
   *
   * @param host a literal address; the port is a free one
   * @param signature of requests for the instance of this node's {@link
   *     io.pmfs.cluster.members.Member}
   * @param tls null for plain HTTP
   * @throws IOException if it cannot listen there
   */
  public PeerServer(
      String host,
      RequestSignature signature,
      @Nullable PeerTls tls,
      PeerLimits limits,
      PeerService service,
      NodeRequests control,
      OutputRequests outputs)
      throws IOException {
    InetAddress local = InetAddress.getByName(host);
    this.limits = limits;
    this.tls = tls;
    this.signature = signature;
    // A worker that answers names may ask other nodes for the directories above, so these requests
    // are never queued: nodes whose workers wait for each other would wait until they time out.
    this.names = workers("names", limits.nameWorkers(), 0);
    this.data = workers("data", limits.dataWorkers(), limits.queued());
    // A worker that answers data may ask other nodes for their copies; the workers that answer such
    // requests wait for no other node.
    int copyWorkers = Math.max(1, limits.dataWorkers() / COPY_WORKERS_PART);
    this.copies = workers("copies", copyWorkers, limits.queued());
    // Queued requests would take their nodes' time without being worked on; refused ones are sent
    // again, and can be interrupted meanwhile.
    this.outputs = workers("outputs", OUTPUT_WORKERS_TIMES * limits.nameWorkers(), 0);
    this.interrupts = workers("interrupts", INTERRUPT_WORKERS, limits.queued());
    this.responder = new PeerResponder(service, control, outputs, limits, data, tls == null);
    try {
      this.address = listen(new InetSocketAddress(local, 0));
      // Requests are signed for one instance; benchmarks sign some.
      log.info("answers peers at {}, instance {}", address, Long.toHexString(signature.instance()));
    } catch (IOException e) {
      close();
      throw e;
    }
  }

  private Workers workers(String name, int most, int queued) {
    return new Workers("pmfs-peer-" + name, most, queued, limits.slowReaders());
  }

  private InetSocketAddress listen(InetSocketAddress wanted) throws IOException {
    ServerBootstrap bootstrap =
        new ServerBootstrap()
            .group(loops)
            .channel(NioServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, 1024)
            .option(ChannelOption.SO_REUSEADDR, true)
            .childOption(ChannelOption.TCP_NODELAY, true)
            .childOption(ChannelOption.SO_KEEPALIVE, true)
            .childOption(ChannelOption.SO_SNDBUF, SEND_BUFFER_BYTES)
            .childHandler(
                new ChannelInitializer<SocketChannel>() {
                  @Override
                  protected void initChannel(SocketChannel channel) {
                    accept(channel);
                  }
                });
    var bound = bootstrap.bind(wanted).awaitUninterruptibly();
    if (!bound.isSuccess()) {
      throw new IOException("cannot listen for peers on " + wanted, bound.cause());
    }
    channels.add(bound.channel());
    return (InetSocketAddress) bound.channel().localAddress();
  }

  private void accept(SocketChannel channel) {
    InetAddress from = channel.remoteAddress().getAddress();
    int same = addresses.merge(from, 1, Integer::sum);
    channel
        .closeFuture()
        .addListener(
            f -> addresses.computeIfPresent(from, (key, count) -> count > 1 ? count - 1 : null));
    if (same > limits.connectionsPerAddress() || channels.size() > limits.connections()) {
      counters.refused("connections");
      channel.close();
      return;
    }
    channels.add(channel);
    if (closed.get()) {
      channel.close();
      return;
    }
    if (tls != null) {
      channel.pipeline().addLast("tls", tls.server(channel));
    }
    PeerConnection connection = new PeerConnection(this);
    HttpDecoderConfig config =
        new HttpDecoderConfig()
            .setMaxInitialLineLength(HttpLimits.MAX_LINE_BYTES)
            .setMaxHeaderSize(HttpLimits.MAX_HEAD_BYTES)
            .setMaxChunkSize(HttpLimits.FRAME_BYTES);
    channel
        .pipeline()
        .addLast(
            new ChannelInboundHandlerAdapter() {
              @Override
              public void channelRead(ChannelHandlerContext ctx, Object message) {
                connection.bytesCame();
                ctx.fireChannelRead(message);
              }
            },
            new HttpRequestDecoder(config),
            new HttpResponseEncoder(),
            connection);
  }

  /** Called on the connection's event loop, as are the methods on connections below. */
  void opened(PeerConnection connection, ChannelHandlerContext ctx) {
    EventExecutor loop = ctx.executor();
    Map<PeerConnection, ChannelHandlerContext> open = connections.get(loop);
    if (open == null) {
      open = new HashMap<>();
      connections.put(loop, open);
      tickLater(loop, open);
    }
    open.put(connection, ctx);
  }

  void closed(PeerConnection connection, ChannelHandlerContext ctx) {
    Map<PeerConnection, ChannelHandlerContext> open = connections.get(ctx.executor());
    if (open != null) {
      open.remove(connection);
    }
  }

  private void tickLater(EventExecutor loop, Map<PeerConnection, ChannelHandlerContext> open) {
    loop.schedule(
        () -> tick(loop, open),
        limits.processing().toNanos() / TICKS_PER_LIMIT,
        TimeUnit.NANOSECONDS);
  }

  private void tick(EventExecutor loop, Map<PeerConnection, ChannelHandlerContext> open) {
    if (open.isEmpty()) {
      connections.remove(loop);
      return;
    }
    tickLater(loop, open);
    // A copy: closing a connection may remove it.
    new ArrayList<>(open.entrySet())
        .forEach(
            entry -> {
              ChannelHandlerContext ctx = entry.getValue();
              try {
                entry.getKey().tick(ctx);
              } catch (RuntimeException | Error e) {
                log.error("a connection of peer {} is closed", ctx.channel().remoteAddress(), e);
                ctx.close();
              }
            });
  }

  /** The address it listens on. */
  public InetSocketAddress address() {
    return address;
  }

  public PeerServerStatistics statistics() {
    return counters.statistics();
  }

  PeerLimits limits() {
    return limits;
  }

  PeerCounters counters() {
    return counters;
  }

  /** Refuses a request without a valid signature, before any other work is done for it. */
  void authenticate(HttpRequest request) throws Refusal {
    signature.verify(request.method().name(), request.uri(), request.headers());
    String host = request.headers().get(HttpHeaderNames.HOST);
    if (host != null && !ADDRESS.matcher(host).matches()) {
      throw new Refusal(
          HttpResponseStatus.MISDIRECTED_REQUEST,
          "the Host header must be this node's address, not a name");
    }
  }

  /** Refuses a body other than the signed one. */
  void authenticateBody(HttpRequest request, byte[] body) throws Refusal {
    String signed = request.headers().get(RequestSignature.BODY_HASH);
    if ((body.length > 0 || signed != null) && !RequestSignature.hash(body).equals(signed)) {
      throw new Refusal(HttpResponseStatus.UNAUTHORIZED, "the body is not the one signed");
    }
  }

  /** Passes the request to a worker; refuses it if all are busy. */
  void answer(PeerRequest request, byte[] body, PeerAnswer answer) {
    try {
      workers(request).execute(() -> responder.answer(request, body, answer));
    } catch (RejectedExecutionException e) {
      answer.refuse(
          new Refusal(HttpResponseStatus.SERVICE_UNAVAILABLE, "this node is busy; ask the source"),
          DefaultHttpHeadersFactory.headersFactory().newHeaders());
    }
  }

  private Workers workers(PeerRequest request) {
    PeerRequest.Resource resource = request.resource();
    if (resource == PeerRequest.Resource.OUTPUTS) {
      return request.target().equals(PeerFormat.INTERRUPT) ? interrupts : outputs;
    }
    if (resource.isAboutCopies() || (resource.isData() && request.onlyCopies())) {
      return copies;
    }
    return resource.isData() ? data : names;
  }

  /** Waits for the workers, since the caller may close the tiers and the source next. */
  private void awaitWorkers() {
    try {
      if (!names.awaitEnd(WORKERS_SECONDS)
          || !data.awaitEnd(WORKERS_SECONDS)
          || !copies.awaitEnd(WORKERS_SECONDS)
          || !outputs.awaitEnd(WORKERS_SECONDS)
          || !interrupts.awaitEnd(WORKERS_SECONDS)) {
        log.warn("the source does not answer: abandoned the requests of peers that wait for it");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Breaks off answers in progress and waits for the workers. Idempotent. */
  @Override
  public void close() {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    channels.close().awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
    // Workers are not interrupted: that would close the file they read (InterruptibleChannel).
    names.close();
    data.close();
    copies.close();
    outputs.close();
    interrupts.close();
    awaitWorkers();
    loops
        .shutdownGracefully(0, CLOSE_SECONDS, TimeUnit.SECONDS)
        .awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
  }
}
