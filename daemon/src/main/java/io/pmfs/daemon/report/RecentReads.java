package io.pmfs.daemon.report;

import io.pmfs.posix.DaemonThread;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The bytes that readers recently received and that the source delivered. The recent past is the
 * last {@link #SPAN}, not counting time without reads, or the time since the daemon started.
 * Thread-safe.
 */
public final class RecentReads implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(RecentReads.class);

  static final Duration INTERVAL = Duration.ofSeconds(10);

  static final Duration SPAN = Duration.ofMinutes(10);

  private static final int MOST = (int) SPAN.dividedBy(INTERVAL);

  private final Supplier<Counts> present;
  private final RecentRequests requests;
  private volatile @Nullable Thread sampler;
  private final Deque<Counts> samples = new ArrayDeque<>(); // GUARDED_BY(this); never empty

  /**
   * Counts of one daemon since its start.
   *
   * @param bytes bytes that readers got from the daemon and from files that the kernel reads by
   *     itself, and bytes that peers got from this node
   * @param sourceBytes bytes that the source was asked for because of these reads, not by tasks
   * @param copied copies made
   * @param copiedAgain of these, copies of files that had been copied before
   * @param evicted copies removed to make room
   * @param origins where the bytes for readers of this node came from
   */
  public record Counts(
      long bytes, long sourceBytes, long copied, long copiedAgain, long evicted, Origins origins) {
    static final Counts NONE = new Counts(0, 0, 0, 0, 0, Origins.NONE);

    Counts minus(Counts earlier) {
      return new Counts(
          bytes - earlier.bytes,
          sourceBytes - earlier.sourceBytes,
          copied - earlier.copied,
          copiedAgain - earlier.copiedAgain,
          evicted - earlier.evicted,
          origins.minus(earlier.origins));
    }

    /**
     * Whether the source delivered at most nine tenths of what readers received. The margin,
     * because concurrent readers of a file always spare the source a little.
     */
    boolean isSourceSpared() {
      return bytes > 0 && 10 * sourceBytes <= 9 * bytes;
    }
  }

  /**
   * Where the bytes for readers of this node came from.
   *
   * @param tiers bytes from each tier's whole copies
   * @param leftToKernel bytes of copies that the kernel reads by itself
   * @param sourceLeftToKernel bytes of the source's files that the kernel reads by itself
   * @param fetched bytes that had just been fetched
   * @param waited bytes for which readers waited for the source or a peer
   * @param peers bytes that arrived from peers or the cache of the node, for any purpose
   * @param source bytes that arrived from the source, for any purpose
   */
  public record Origins(
      List<Long> tiers,
      long leftToKernel,
      long sourceLeftToKernel,
      long fetched,
      long waited,
      long peers,
      long source) {
    static final Origins NONE = new Origins(List.of(), 0, 0, 0, 0, 0, 0);

    public Origins {
      tiers = List.copyOf(tiers);
    }

    /** The bytes from a tier; 0 if not counted. */
    long tier(int index) {
      return index < tiers.size() ? tiers.get(index) : 0;
    }

    /** All bytes that readers received. */
    long bytes() {
      return tiers.stream().mapToLong(Long::longValue).sum()
          + leftToKernel
          + sourceLeftToKernel
          + fetched
          + waited;
    }

    Origins minus(Origins earlier) {
      return new Origins(
          IntStream.range(0, tiers.size()).mapToObj(i -> tiers.get(i) - earlier.tier(i)).toList(),
          leftToKernel - earlier.leftToKernel,
          sourceLeftToKernel - earlier.sourceLeftToKernel,
          fetched - earlier.fetched,
          waited - earlier.waited,
          peers - earlier.peers,
          source - earlier.source);
    }
  }

  /**
   * Starts with no reads.
   *
   * @param requests sampled at the same times
   */
  public RecentReads(Supplier<Counts> present, RecentRequests requests) {
    this.present = present;
    this.requests = requests;
    samples.add(Counts.NONE);
  }

  /** Starts sampling the counts periodically, until it is closed. */
  public void start() {
    Thread started = DaemonThread.repeating("recent-reads", INTERVAL, this::trySample);
    sampler = started;
    started.start();
  }

  @Override
  public void close() {
    Thread started = sampler;
    if (started != null) {
      started.interrupt();
    }
  }

  private void trySample() {
    try {
      sample();
    } catch (RuntimeException e) {
      log.debug("no sample", e);
    }
  }

  /** Records the present counts if something was read since the last sample. */
  void sample() {
    requests.sample();
    Counts now = present.get();
    synchronized (this) {
      if (now.bytes() == samples.getLast().bytes()) {
        return;
      }
      samples.addLast(now);
      while (samples.size() > MOST + 1) {
        samples.removeFirst();
      }
    }
  }

  /** The counts of the recent past, up to now. */
  public Counts counts() {
    Counts now = present.get();
    synchronized (this) {
      return now.minus(samples.getFirst());
    }
  }
}
