package io.pmfs.cluster;

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
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.InstantSource;
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
 * Answers peers over HTTP what a {@link PeerService} has: the protocol is in docs/formats.md,
 * Peers. Reads requests on event loops, answers names and content on workers of their own. Whatever
 * a peer sends takes bounded memory and time. Safe for use by many threads.
 */
@SuppressWarnings("FutureReturnValueIgnored") // what fails on a channel comes to its handlers
public final class PeerServer implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(PeerServer.class);
  private static final int EVENT_LOOPS = 2;
  private static final int CLOSE_SECONDS = 5;

  /** Nodes know each other by addresses: a name may have been made to mean this machine. */
  private static final Pattern ADDRESS =
      Pattern.compile("(\\d{1,3}(\\.\\d{1,3}){3}|\\[[0-9A-Fa-f:.]+])(:\\d{1,5})?");

  /** For one worker that answers from copies only there are so many others for data. */
  private static final int COPY_WORKERS_PART = 4;

  /** As long as unmounting waits for a source that does not answer. */
  private static final int WORKERS_SECONDS = 30;

  private final PeerLimits limits;
  private final PeerCounters counters = new PeerCounters();
  private final RequestSignature signature;
  private final @Nullable PeerTls tls;
  private final PeerResponder responder;
  private final Workers names;
  private final Workers data;
  private final Workers copies;
  private final EventLoopGroup loops =
      new MultiThreadIoEventLoopGroup(
          EVENT_LOOPS,
          new DefaultThreadFactory("pmfs-peer-server", true),
          NioIoHandler.newFactory());
  private final ChannelGroup channels = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
  private final Map<InetAddress, Integer> addresses = new ConcurrentHashMap<>();
  private final AtomicBoolean closed = new AtomicBoolean();
  private final InetSocketAddress address;

  /**
   * Listens.
   *
   * @param host a literal address
   * @param port 0 for a free one
   * @param key that requests are signed with
   * @param tls null for plain HTTP
   * @param instance of the {@link Member} that this node is
   * @throws IOException if it cannot listen there
   */
  public PeerServer(
      String host,
      int port,
      byte[] key,
      @Nullable PeerTls tls,
      long instance,
      PeerLimits limits,
      PeerService service,
      NodeRequests control)
      throws IOException {
    this(host, port, key, tls, instance, limits, service, control, InstantSource.system());
  }

  PeerServer(
      String host,
      int port,
      byte[] key,
      @Nullable PeerTls tls,
      long instance,
      PeerLimits limits,
      PeerService service,
      NodeRequests control,
      InstantSource clock)
      throws IOException {
    InetAddress local = InetAddress.getByName(host);
    this.limits = limits;
    this.tls = tls;
    this.signature = new RequestSignature(key, instance, clock);
    // Who answers names may ask other nodes for those above, so none may wait for its turn: nodes
    // whose workers wait for each other would wait until their time is up.
    this.names = workers("names", limits.nameWorkers(), 0);
    this.data = workers("data", limits.dataWorkers(), limits.queued());
    // Who answers data may ask other nodes for their copies: those who answer that wait for nobody.
    int copyWorkers = Math.max(1, limits.dataWorkers() / COPY_WORKERS_PART);
    this.copies = workers("copies", copyWorkers, limits.queued());
    this.responder = new PeerResponder(service, control, limits, data, tls == null);
    try {
      this.address = listen(new InetSocketAddress(local, port));
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
            .childHandler(
                new ChannelInitializer<SocketChannel>() {
                  @Override
                  protected void initChannel(SocketChannel channel) {
                    accept(channel);
                  }
                });
    var bound = bootstrap.bind(wanted).awaitUninterruptibly();
    if (!bound.isSuccess()) {
      throw new IOException("listening for peers on " + wanted, bound.cause());
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

  /** Where it listens. */
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

  /** Refuses whom this server does not know, before anything else is done for it. */
  void authenticate(HttpRequest request) throws Refusal {
    signature.verify(request.method().name(), request.uri(), request.headers());
    String host = request.headers().get(HttpHeaderNames.HOST);
    if (host != null && !ADDRESS.matcher(host).matches()) {
      throw new Refusal(
          HttpResponseStatus.MISDIRECTED_REQUEST, "ask by this node's address, not by a name");
    }
  }

  /** Refuses a body that is not the one which was signed. */
  void authenticateBody(HttpRequest request, byte[] body) throws Refusal {
    String signed = request.headers().get(RequestSignature.BODY_HASH);
    if ((body.length > 0 || signed != null) && !RequestSignature.hash(body).equals(signed)) {
      throw new Refusal(HttpResponseStatus.UNAUTHORIZED, "the body is not the one signed");
    }
  }

  /** Has a worker answer. */
  void answer(PeerRequest request, byte[] body, PeerAnswer answer) {
    Workers pool = !request.resource().isData() ? names : request.onlyCopies() ? copies : data;
    try {
      pool.execute(() -> responder.answer(request, body, answer));
    } catch (RejectedExecutionException e) {
      answer.refuse(
          new Refusal(HttpResponseStatus.SERVICE_UNAVAILABLE, "this node is busy; ask the source"),
          DefaultHttpHeadersFactory.headersFactory().newHeaders());
    }
  }

  /** What they read from may be closed next. */
  private void awaitWorkers() {
    try {
      if (!names.awaitEnd(WORKERS_SECONDS)
          || !data.awaitEnd(WORKERS_SECONDS)
          || !copies.awaitEnd(WORKERS_SECONDS)) {
        log.warn("the source does not answer: peers that wait for it are left behind");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Ends answers that are under way. Idempotent. */
  @Override
  public void close() {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    channels.close().awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
    // Without an interrupt: that would close the file that a worker reads (InterruptibleChannel).
    names.close();
    data.close();
    copies.close();
    awaitWorkers();
    loops
        .shutdownGracefully(0, CLOSE_SECONDS, TimeUnit.SECONDS)
        .awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
  }
}
