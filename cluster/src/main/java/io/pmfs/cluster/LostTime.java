package io.pmfs.cluster;

import com.google.common.base.Ticker;
import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.cluster.client.Patience;
import io.pmfs.metadata.FileName;
import java.time.Duration;
import java.util.function.LongSupplier;

/**
 * How long readers have recently waited for peers without result, by path. A read of a file asks
 * several questions: about its parent directories, its name and its ranges. Together they may wait
 * no longer than one alone. Thread-safe.
 */
final class LostTime {
  /** Longer than the time between two questions of one read. */
  static final Duration MEMORY = Duration.ofSeconds(3);

  private static final int MOST_PATHS = 10_000;

  /** Shorter waits are not recorded. */
  private static final long LEAST_NANOS = 50_000_000L;

  private final Duration most;
  private final Cache<FileName, Long> lost;

  /**
   * Starts without a loss.
   *
   * @param most how long a reader waits for peers
   */
  LostTime(Duration most, LongSupplier nanoTime) {
    this.most = most;
    this.lost =
        CacheBuilder.newBuilder()
            .maximumSize(MOST_PATHS)
            .expireAfterWrite(MEMORY)
            .ticker(
                new Ticker() {
                  @Override
                  public long read() {
                    return nanoTime.getAsLong();
                  }
                })
            .build();
  }

  /** A question about a path, until it is closed. */
  final class Question implements AutoCloseable {
    private final FileName path;
    private final long before;
    private final Patience patience;

    private Question(FileName path, long before, Patience patience) {
      this.path = path;
      this.before = before;
      this.patience = patience;
    }

    Patience patience() {
      return patience;
    }

    /** Others may have waited at the same time, which counts once. */
    @Override
    public void close() {
      if (patience.lostNanos() >= LEAST_NANOS) {
        lost.asMap().merge(path, before + patience.lostNanos(), Math::max);
      }
    }
  }

  /** Starts a question about a path; the caller closes it. */
  Question ask(FileName path) {
    if (lost.size() == 0) {
      return new Question(path, 0, new Patience(most));
    }
    long own = of(path);
    long all = own;
    for (FileName above = path; above.size() > 0; ) {
      above = Paths.parent(above);
      all += of(above);
    }
    return new Question(path, own, new Patience(most.minusNanos(all)));
  }

  private long of(FileName path) {
    Long nanos = lost.getIfPresent(path);
    return nanos == null ? 0 : nanos;
  }
}
