package io.pmfs.cluster.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.AdaptiveRecvByteBufAllocator;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequestEncoder;
import io.netty.handler.codec.http.HttpResponseDecoder;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.ByteRange;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.HttpLimits;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.cluster.peers.PeerPath;
import io.pmfs.cluster.peers.PeerTls;
import io.pmfs.cluster.peers.RequestSignature;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.source.SourceStatus;
import java.nio.ByteBuffer;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Asks peers over HTTP (docs/formats.md, Peers). Event loops copy content from the sockets to its
 * destination; the asking thread compares the checksums. Small files that would have to wait for
 * each other are requested together.
 */
public final class HttpPeerClient implements PeerClient {
  /** Larger files get a request of their own. */
  static final int SMALL_BYTES = 128 << 10;

  private static final int EVENT_LOOPS = 2;
  private static final int MAX_CONNECTIONS = 32;

  /** With this many requests for small files to one peer, further files are requested together. */
  private static final int ALONE_COUNT = 2;

  private static final int LARGEST_RECEIVE_BYTES = 256 << 10;
  private static final int CLOSE_SECONDS = 5;

  private final byte[] key;
  private final PeerTimeouts timeouts;
  private final int aloneCount;
  private final Predicate<Member> lacksSource;
  private final @Nullable UUID self;
  private final InstantSource clock;
  private final EventLoopGroup loops =
      new MultiThreadIoEventLoopGroup(
          EVENT_LOOPS,
          new DefaultThreadFactory("pmfs-peer-client", true),
          NioIoHandler.newFactory());
  private final Bootstrap bootstrap;
  private final Map<UUID, PeerLink> links = new ConcurrentHashMap<>();

  /**
   * Creates a client, which connects when it is used.
   *
   * @param key the key that signs requests
   * @param tls null for plain HTTP
   * @param lacksSource which peers are known not to reach the source: readers do not wait for such
   *     a peer while it waits for the source
   * @param self this node's id if it keeps copies of what it reads, so that peers may name it to
   *     others; else null
   */
  public HttpPeerClient(
      byte[] key,
      @Nullable PeerTls tls,
      PeerTimeouts timeouts,
      Predicate<Member> lacksSource,
      @Nullable UUID self) {
    this(key, tls, timeouts, ALONE_COUNT, lacksSource, self);
  }

  public HttpPeerClient(
      byte[] key,
      @Nullable PeerTls tls,
      PeerTimeouts timeouts,
      int aloneCount,
      Predicate<Member> lacksSource,
      @Nullable UUID self) {
    this(key, tls, timeouts, aloneCount, lacksSource, self, InstantSource.system());
  }

  public HttpPeerClient(
      byte[] key,
      @Nullable PeerTls tls,
      PeerTimeouts timeouts,
      int aloneCount,
      Predicate<Member> lacksSource,
      @Nullable UUID self,
      InstantSource clock) {
    this.clock = clock;
    this.lacksSource = lacksSource;
    this.self = self;
    this.key = key.clone();
    this.timeouts = timeouts;
    this.aloneCount = aloneCount;
    this.bootstrap =
        new Bootstrap()
            .group(loops)
            .channel(NioSocketChannel.class)
            .option(ChannelOption.TCP_NODELAY, true)
            .option(ChannelOption.SO_KEEPALIVE, true)
            .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, (int) timeouts.connect().toMillis())
            .option(
                ChannelOption.RECVBUF_ALLOCATOR,
                new AdaptiveRecvByteBufAllocator(2048, 16 << 10, LARGEST_RECEIVE_BYTES))
            .handler(
                new ChannelInitializer<SocketChannel>() {
                  @Override
                  protected void initChannel(SocketChannel channel) {
                    connected(channel, tls);
                  }
                });
  }

  private static void connected(SocketChannel channel, @Nullable PeerTls tls) {
    PeerClientHandler handler = new PeerClientHandler();
    channel.attr(PeerLink.HANDLER).set(handler);
    HttpDecoderConfig config =
        new HttpDecoderConfig()
            .setMaxInitialLineLength(1024)
            .setMaxHeaderSize(HttpLimits.MAX_HEAD_BYTES)
            .setMaxChunkSize(LARGEST_RECEIVE_BYTES);
    channel.pipeline().addLast(handler.new Bytes());
    if (tls != null) {
      channel.pipeline().addLast(tls.client(channel));
    }
    channel.pipeline().addLast(new HttpResponseDecoder(config), new HttpRequestEncoder(), handler);
  }

  /** Statistics of the requests to a peer, over all its instances. */
  public PeerStatistics statistics(Member peer) {
    PeerLink link = links.get(peer.id());
    return link == null ? PeerStatistics.NONE : link.counts.statistics();
  }

  /**
   * Sends a request to a peer's {@code NodeRequests}.
   *
   * @param path below /v1/, with its query
   * @param body JSON; empty for none
   * @return JSON
   */
  public String call(Member peer, String method, String path, String body) throws PeerException {
    ByteBuf answer =
        small(
            peer,
            HttpMethod.valueOf(method),
            "/v1/" + path,
            body.getBytes(UTF_8),
            Patience.endless());
    return answer.toString(UTF_8);
  }

  /**
   * Sends a request to a peer's {@code OutputRequests}.
   *
   * @param name of the request
   */
  public byte[] outputs(Member peer, String name, byte[] body) throws PeerException {
    ByteBuf answer = small(peer, HttpMethod.POST, "/v1/outputs/" + name, body, Patience.endless());
    return ByteBufUtil.getBytes(answer, 0, answer.readableBytes(), false);
  }

  @Override
  public void list(
      Member peer, FileName directory, Consumer<List<SourceEntry>> batches, Patience patience)
      throws PeerException {
    PeerLink link = link(peer);
    try (PeerReaders.Directory reader = new PeerReaders.Directory(peer)) {
      link.counted(
          () -> {
            link.exchange(
                HttpMethod.GET,
                "/v1/directory/" + PeerPath.encode(directory),
                PeerFormat.headers(),
                new byte[0],
                reader,
                patience);
            return reader;
          });
      reader.forEach(batches);
    }
  }

  @Override
  public SourceStatus status(Member peer, FileName path, Patience patience) throws PeerException {
    return decoded(peer, get(peer, "status", path, patience), PeerFormat::status);
  }

  @Override
  public FileName readSymbolicLink(Member peer, FileName path, Patience patience)
      throws PeerException {
    return decoded(peer, get(peer, "link", path, patience), PeerFormat::target);
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(Member peer, FileName path, Patience patience)
      throws PeerException {
    return decoded(peer, get(peer, "xattr", path, patience), PeerFormat::attributes);
  }

  private ByteBuf get(Member peer, String resource, FileName path, Patience patience)
      throws PeerException {
    String target = "/v1/" + resource + "/" + PeerPath.encode(path);
    return small(peer, HttpMethod.GET, target, new byte[0], patience);
  }

  private ByteBuf small(
      Member peer, HttpMethod method, String target, byte[] body, Patience patience)
      throws PeerException {
    PeerLink link = link(peer);
    return link.counted(
        () -> {
          PeerReaders.Small reader = new PeerReaders.Small(peer);
          link.exchange(method, target, PeerFormat.headers(), body, reader, patience);
          return reader.body();
        });
  }

  private static <T> T decoded(Member peer, ByteBuf body, Function<ByteBuf, T> decoder)
      throws PeerException {
    try {
      T value = decoder.apply(body);
      if (!body.isReadable()) {
        return value;
      }
    } catch (IllegalArgumentException e) {
      // Treated like bytes left over, below.
    }
    throw new PeerException(PeerException.Kind.CORRUPT, peer + " sent malformed attributes");
  }

  @Override
  public Given fetch(
      Member peer,
      FileName path,
      SourceVersion expected,
      long offset,
      ByteBuffer destination,
      boolean onlyCopies,
      Patience patience)
      throws PeerException {
    PeerFormat.BatchItem item = new PeerFormat.BatchItem(path, expected, onlyCopies);
    int size = destination.remaining();
    if (offset < 0 || offset + size > expected.size()) {
      throw new IllegalArgumentException("the range is not within the file");
    }
    if (size == 0 && expected.size() > 0) {
      return new Given(unread(peer, item, patience), List.of());
    }
    PeerLink link = link(peer);
    boolean isWhole = offset == 0 && size == expected.size();
    Given given =
        link.counted(
            () ->
                isWhole && size <= SMALL_BYTES
                    ? readSmall(link, item, destination.duplicate(), patience)
                    : readRange(link, item, offset, destination.duplicate(), patience));
    link.counts.bytes.add(size);
    destination.position(destination.limit());
    return given;
  }

  /** Not counted among the requests to a peer, which have content. */
  @Override
  public HeldBlocks blocks(
      Member peer,
      FileName path,
      SourceVersion expected,
      HeldBlocks.Wanted wanted,
      Patience patience)
      throws PeerException {
    HttpHeaders headers = PeerFormat.headers();
    headers.set(RequestSignature.EXPECTED, PeerFormat.version(expected));
    headers.set(PeerFormat.WANTED, PeerFormat.wanted(wanted));
    if (self != null) {
      headers.set(PeerFormat.NODE, self.toString());
    }
    PeerReaders.Small reader = new PeerReaders.Small(peer);
    String target = "/v1/blocks/" + PeerPath.encode(path);
    link(peer).exchange(HttpMethod.GET, target, headers, new byte[0], reader, patience);
    return decoded(peer, reader.body(), PeerFormat::blocks);
  }

  /** Reads an empty range, which a Range header cannot request: checks the version only. */
  private SourceStatus unread(Member peer, PeerFormat.BatchItem item, Patience patience)
      throws PeerException {
    SourceStatus status = status(peer, item.path(), patience);
    if (!status.attributes().version().equals(item.expected())) {
      throw new PeerException(
          PeerException.Kind.REFUSED, peer + " has another version of the file");
    }
    return status;
  }

  private static Given readSmall(
      PeerLink link, PeerFormat.BatchItem item, ByteBuffer destination, Patience patience)
      throws PeerException {
    int start = destination.position();
    SmallRead read = new SmallRead(item, destination, patience);
    link.perform(read);
    return new Given(read.result(link.peer, start), List.of());
  }

  private Given readRange(
      PeerLink link,
      PeerFormat.BatchItem item,
      long offset,
      ByteBuffer destination,
      Patience patience)
      throws PeerException {
    int end = destination.limit();
    long from = offset;
    while (true) {
      int size = Math.min(HttpLimits.MAX_CHECKED_BYTES, end - destination.position());
      destination.limit(destination.position() + size);
      ByteRange range = new ByteRange(from, from + size);
      HttpHeaders headers = PeerLink.dataHeaders(item);
      if (self != null && !item.onlyCopies()) {
        headers.set(PeerFormat.NODE, self.toString());
      }
      headers.set(HttpHeaderNames.RANGE, "bytes=" + from + "-" + (from + size - 1));
      PeerReaders.Range reader =
          new PeerReaders.Range(
              link.peer, item.expected(), range.header(item.expected().size()), destination);
      link.exchange(
          HttpMethod.GET,
          "/v1/data/" + PeerPath.encode(item.path()),
          headers,
          new byte[0],
          reader,
          patience);
      Given given = reader.verify();
      from += size;
      if (destination.limit() == end) {
        return given;
      }
      destination.limit(end);
    }
  }

  private PeerLink link(Member peer) {
    PeerLink link = links.get(peer.id());
    if (link != null && link.peer.equals(peer)) {
      return link;
    }
    return links.compute(
        peer.id(),
        (id, old) -> {
          if (old != null && old.peer.equals(peer)) {
            return old;
          }
          if (old != null) {
            old.close();
          }
          return new PeerLink(
              peer,
              old == null ? new PeerLink.Counts() : old.counts,
              new PeerConnections(peer, bootstrap, timeouts, MAX_CONNECTIONS),
              timeouts,
              aloneCount,
              new RequestSignature(key, peer.instance(), clock),
              lacksSource);
        });
  }

  /** Forgets peers that are no longer members, with their statistics. */
  public void keepOnly(Set<UUID> members) {
    links
        .values()
        .removeIf(
            link -> {
              boolean isGone = !members.contains(link.peer.id());
              if (isGone) {
                link.close();
              }
              return isGone;
            });
  }

  @Override
  public void close() {
    links.values().forEach(PeerLink::close);
    loops
        .shutdownGracefully(0, CLOSE_SECONDS, TimeUnit.SECONDS)
        .awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
  }
}
