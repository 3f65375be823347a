package io.pmfs.shards;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Counts problems in shards, with the first examples of each kind. Thread-safe. */
final class Warnings {
  private static final Logger log = LoggerFactory.getLogger(Warnings.class);
  private static final int EXAMPLES = 3;

  private final Map<Warning, Long> counts = new EnumMap<>(Warning.class); // GUARDED_BY(this)
  private final Map<Warning, List<String>> examples = new EnumMap<>(Warning.class);

  synchronized void add(Warning warning, String where) {
    counts.merge(warning, 1L, Long::sum);
    List<String> some = examples.computeIfAbsent(warning, w -> new ArrayList<>());
    if (some.size() < EXAMPLES) {
      some.add(where);
    }
  }

  synchronized long count() {
    return counts.values().stream().mapToLong(Long::longValue).sum();
  }

  synchronized void report() {
    counts.forEach(
        (warning, count) ->
            log.warn(
                "{} {}, for example {}",
                count,
                warning.description(),
                String.join(", ", examples.getOrDefault(warning, List.of()))));
  }
}
