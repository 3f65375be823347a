package io.pmfs.stage;

import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Counts for {@link ReadOrigins}. Thread-safe. */
final class OriginCounters {
  private final List<Counter> tiers;
  private final Counter fetched = new Counter();
  private final Counter source = new Counter();

  private static final class Counter {
    private final LongAdder reads = new LongAdder();
    private final LongAdder bytes = new LongAdder();

    void add(int count) {
      reads.increment();
      bytes.add(count);
    }

    ReadOrigins.Origin sum() {
      return new ReadOrigins.Origin(reads.sum(), bytes.sum());
    }
  }

  OriginCounters(int tierCount) {
    tiers = IntStream.range(0, tierCount).mapToObj(i -> new Counter()).toList();
  }

  void fromTier(int tier, int bytes) {
    tiers.get(tier).add(bytes);
  }

  void fetched(int bytes) {
    fetched.add(bytes);
  }

  void fromSource(int bytes) {
    source.add(bytes);
  }

  ReadOrigins sum() {
    Stream<ReadOrigins.Origin> sums = tiers.stream().map(Counter::sum);
    return new ReadOrigins(sums.toList(), fetched.sum(), source.sum());
  }
}
