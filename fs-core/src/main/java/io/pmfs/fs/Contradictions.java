package io.pmfs.fs;

import io.pmfs.metadata.Namespace;
import io.pmfs.stage.copies.InodeBytes;
import java.util.Map;

/**
 * Which files were found to be of another version than they were described before. Each such find
 * begins the file's next generation; generation 0 is the first.
 *
 * <p>The next process of the session loads the generations. Thread-safe.
 */
final class Contradictions {
  private static final String KEY = "generation/";
  private static final int SESSION_SHIFT = 32;

  private final Namespace namespace;
  private final InodeBytes generations = new InodeBytes();

  Contradictions(Namespace namespace) {
    this.namespace = namespace;
    for (Map.Entry<String, Long> each : namespace.counters(KEY).entrySet()) {
      long value = each.getValue();
      if (value >>> SESSION_SHIFT == namespace.session()) {
        generations.set(Long.parseLong(each.getKey()), (byte) value);
      } else {
        namespace.removeCounter(KEY + each.getKey());
      }
    }
  }

  byte generation(long number) {
    return generations.get(number);
  }

  /** Begins a generation. After 255 of them, the numbers repeat from 1. */
  synchronized void add(long number) {
    byte next = (byte) (generations.get(number) + 1);
    next = next == 0 ? 1 : next;
    long session = (long) namespace.session() << SESSION_SHIFT;
    namespace.putCounter(KEY + number, session | Byte.toUnsignedInt(next));
    generations.set(number, next);
  }
}
