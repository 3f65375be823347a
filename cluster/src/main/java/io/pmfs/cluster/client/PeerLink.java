package io.pmfs.cluster.client;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.handler.codec.http.DefaultFullHttpRequest;
import io.netty.handler.codec.http.EmptyHttpHeaders;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.util.AttributeKey;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.cluster.peers.PeerPath;
import io.pmfs.cluster.peers.RequestSignature;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Predicate;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A client's state for one peer: connections, signatures, counts. Safe for many threads. */
@SuppressWarnings("FutureReturnValueIgnored") // a channel reports failures to its handlers
public final class PeerLink {
  private static final Logger log = LoggerFactory.getLogger(PeerLink.class);

  static final AttributeKey<PeerClientHandler> HANDLER =
      AttributeKey.valueOf(PeerLink.class, "handler");

  private static final int LARGE_BYTES = 64 << 10;
  private static final long LONGEST_MICROS = 120_000_000;

  /** Longer than the interval at which a waiting peer reports that. */
  private static final long WAIT_NANOS = 3_000_000_000L;

  final Member peer;
  final Counts counts;
  final PeerTimeouts timeouts;
  private final Predicate<Member> lacksSource;
  private final PeerConnections connections;
  private final RequestSignature signature;
  private final SmallReads smallReads;

  /** When the peer last reported that it is itself waiting. */
  private volatile long waitedNanos = System.nanoTime() - WAIT_NANOS;

  /** Reads of copies only: they need no source, so they must not wait for reads that do. */
  private final SmallReads smallCopies;

  /** Counts for a peer, over all its instances. */
  static final class Counts {
    final LongAdder requests = new LongAdder();
    final LongAdder bytes = new LongAdder();
    final LongAdder failures = new LongAdder();

    /** Response times in microseconds, to two digits. */
    final Histogram micros = new ConcurrentHistogram(LONGEST_MICROS, 2);

    PeerStatistics statistics() {
      return new PeerStatistics(
          requests.sum(),
          bytes.sum(),
          failures.sum(),
          micros.getValueAtPercentile(50) / 1000.0,
          micros.getValueAtPercentile(99) / 1000.0);
    }
  }

  PeerLink(
      Member peer,
      Counts counts,
      PeerConnections connections,
      PeerTimeouts timeouts,
      int aloneCount,
      RequestSignature signature,
      Predicate<Member> lacksSource) {
    this.peer = peer;
    this.lacksSource = lacksSource;
    this.counts = counts;
    this.timeouts = timeouts;
    this.connections = connections;
    this.signature = signature;
    this.smallReads = new SmallReads(aloneCount, this::send, this::isWorthWaiting);
    this.smallCopies = new SmallReads(aloneCount, this::send, () -> false);
  }

  /** Whether the peer is known not to reach the source. */
  boolean lacksSource() {
    return lacksSource.test(peer);
  }

  /** The peer reports that it is itself waiting. */
  void waits() {
    waitedNanos = System.nanoTime();
  }

  private boolean isWorthWaiting() {
    return System.nanoTime() - waitedNanos < WAIT_NANOS && !lacksSource();
  }

  /** Closes the connections that are not in use. */
  void close() {
    connections.close();
  }

  interface Call<T> {
    T run() throws PeerException;
  }

  <T> T counted(Call<T> call) throws PeerException {
    long start = System.nanoTime();
    counts.requests.increment();
    try {
      T result = call.run();
      long micros = (System.nanoTime() - start) / 1000;
      counts.micros.recordValue(Math.min(micros, LONGEST_MICROS));
      return result;
    } catch (PeerException e) {
      if (e.kind() != PeerException.Kind.REFUSED
          && e.kind() != PeerException.Kind.OTHER_VERSION
          && e.kind() != PeerException.Kind.BUSY) {
        counts.failures.increment();
      }
      throw e;
    }
  }

  /** Performs a small read, alone or with others; returns when it has ended. */
  void perform(SmallRead read) {
    (read.item().onlyCopies() ? smallCopies : smallReads).perform(read);
  }

  /** Sends a request, and returns when the reader has the whole answer. */
  void exchange(
      HttpMethod method,
      String target,
      HttpHeaders headers,
      byte[] body,
      PeerExchange.Reader reader,
      Patience patience)
      throws PeerException {
    PeerConnections.Use use = use(target, headers, body);
    boolean mayWait = use != PeerConnections.Use.COPIES;
    connections.enter(use, this::isWorthWaiting, patience);
    try {
      Channel used = connections.reuse();
      PeerExchange exchange = new PeerExchange(this, reader, mayWait, patience);
      String nonce =
          finish(
              used == null ? connections.connect(patience) : used,
              exchange,
              method,
              target,
              headers,
              body);
      if (used != null && exchange.isUnheard()) {
        // The peer had closed the idle connection.
        exchange = new PeerExchange(this, reader, mayWait, patience);
        nonce = finish(connections.connect(patience), exchange, method, target, headers, body);
      }
      if (exchange.clock() != null && learnClock(exchange.clock(), nonce)) {
        exchange = new PeerExchange(this, reader, mayWait, patience);
        finish(connections.connect(patience), exchange, method, target, headers, body);
      }
      PeerException failure = exchange.failure();
      if (failure != null) {
        throw failure;
      }
    } finally {
      connections.leave(use);
    }
  }

  /** Whether a refused request may be accepted if it is signed again. */
  private boolean learnClock(@Nullable String value, String nonce) {
    long before = signature.aheadMillis();
    if (!signature.learn(value, nonce)) {
      return false;
    }
    long ahead = signature.aheadMillis();
    // Other threads may have learned it at the same time.
    if (Math.abs(ahead - before) > RequestSignature.MAX_SKEW_MILLIS / 2) {
      log.warn(
          ahead > 0
              ? "the clock of {} is {} s ahead of this node's; requests to it are signed with its"
                  + " time. Compare the clocks of both nodes"
              : "the clock of {} is {} s behind this node's; requests to it are signed with its"
                  + " time. Compare the clocks of both nodes",
          peer,
          Math.abs(ahead) / 1000);
    }
    return true;
  }

  private static PeerConnections.Use use(String target, HttpHeaders headers, byte[] body) {
    if (target.equals("/v1/" + PeerFormat.INTERRUPT)) {
      return PeerConnections.Use.INTERRUPTS;
    }
    if (target.startsWith("/v1/outputs")) {
      return body.length > LARGE_BYTES
          ? PeerConnections.Use.LARGE_OUTPUTS
          : PeerConnections.Use.OUTPUTS;
    }
    if (target.startsWith("/v1/blocks")) {
      return PeerConnections.Use.COPIES;
    }
    if (!target.startsWith("/v1/data")) {
      return PeerConnections.Use.NAMES;
    }
    return headers.contains(HttpHeaderNames.CACHE_CONTROL)
        ? PeerConnections.Use.COPIES
        : PeerConnections.Use.DATA;
  }

  /** Returns the nonce of the request. */
  private String finish(
      Channel channel,
      PeerExchange exchange,
      HttpMethod method,
      String target,
      HttpHeaders headers,
      byte[] body) {
    channel.attr(HANDLER).get().expect(exchange);
    DefaultFullHttpRequest request =
        new DefaultFullHttpRequest(
            HttpVersion.HTTP_1_1,
            method,
            target,
            Unpooled.wrappedBuffer(body),
            headers.copy(),
            EmptyHttpHeaders.INSTANCE);
    request.headers().set(HttpHeaderNames.HOST, host(peer));
    if (body.length > 0 || method.equals(HttpMethod.POST)) {
      request.headers().set(HttpHeaderNames.CONTENT_LENGTH, body.length);
    }
    if (body.length > 0) {
      request.headers().set(RequestSignature.BODY_HASH, RequestSignature.hash(body));
    }
    String nonce = signature.sign(method.name(), target, request.headers());
    channel
        .writeAndFlush(request)
        .addListener(
            sent -> {
              if (!sent.isSuccess()) {
                exchange.closed("did not take the request");
              }
            });
    if (exchange.await(channel)) {
      connections.keep(channel);
    } else {
      channel.close();
    }
    return nonce;
  }

  /** A peer's address and port, as in a URL. */
  public static String host(Member peer) {
    return (peer.host().indexOf(':') < 0 ? peer.host() : "[" + peer.host() + "]")
        + ":"
        + peer.port();
  }

  /** Reads small files with one request, and ends each read. */
  private @Nullable PeerException send(List<SmallRead> reads, Patience patience) {
    PeerException.Kind kind = PeerException.Kind.FAILED;
    PeerException failure = new PeerException(kind, peer + " was not asked");
    try {
      if (reads.size() == 1) {
        single(reads.get(0), patience);
      } else {
        ByteBuf body = Unpooled.buffer();
        PeerFormat.putBatch(body, reads.stream().map(SmallRead::item).toList());
        byte[] bytes = ByteBufUtil.getBytes(body);
        exchange(
            HttpMethod.POST,
            "/v1/data",
            headers(reads.get(0).item()),
            bytes,
            new PeerReaders.Batch(peer, reads),
            patience);
      }
    } catch (PeerException e) {
      failure = e;
    } finally {
      for (SmallRead read : reads) {
        read.fail(failure);
      }
    }
    return failure.kind() == PeerException.Kind.UNREACHABLE ? failure : null;
  }

  private void single(SmallRead read, Patience patience) throws PeerException {
    PeerReaders.Range reader =
        new PeerReaders.Range(peer, read.item().expected(), null, read.destination());
    exchange(
        HttpMethod.GET,
        "/v1/data/" + PeerPath.encode(read.item().path()),
        dataHeaders(read.item()),
        new byte[0],
        reader,
        patience);
    read.succeed(reader.verify().status());
  }

  /** The headers of a request for content of that version. */
  static HttpHeaders dataHeaders(PeerFormat.BatchItem item) {
    HttpHeaders headers = headers(item);
    headers.set(RequestSignature.EXPECTED, PeerFormat.version(item.expected()));
    return headers;
  }

  private static HttpHeaders headers(PeerFormat.BatchItem item) {
    HttpHeaders headers = PeerFormat.headers();
    if (item.onlyCopies()) {
      headers.set(HttpHeaderNames.CACHE_CONTROL, "only-if-cached");
    }
    return headers;
  }
}
