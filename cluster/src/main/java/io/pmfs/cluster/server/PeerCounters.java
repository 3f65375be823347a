package io.pmfs.cluster.server;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAccumulator;
import java.util.concurrent.atomic.LongAdder;

/** Counts for {@link PeerServerStatistics}. Thread-safe. */
final class PeerCounters {
  final LongAdder requests = new LongAdder();
  final LongAdder bytes = new LongAdder();
  final LongAdder failed = new LongAdder();
  final AtomicInteger active = new AtomicInteger();
  final LongAccumulator longestWaitMillis = new LongAccumulator(Math::max, 0);
  private final Map<String, LongAdder> refused = new ConcurrentHashMap<>();

  /** Counts a refusal; the reasons are few and not chosen by peers. */
  void refused(String reason) {
    refused.computeIfAbsent(reason, key -> new LongAdder()).increment();
  }

  PeerServerStatistics statistics() {
    Map<String, Long> reasons = new TreeMap<>();
    refused.forEach((reason, count) -> reasons.put(reason, count.sum()));
    return new PeerServerStatistics(
        requests.sum(), bytes.sum(), reasons, failed.sum(), active.get(), longestWaitMillis.get());
  }
}
