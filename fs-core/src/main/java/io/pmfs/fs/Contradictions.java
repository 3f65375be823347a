package io.pmfs.fs;

import io.pmfs.metadata.Namespace;
import io.pmfs.stage.copies.InodeBytes;
import java.util.Map;

/**
 * Which files were found to be of another version than they were described before. Each such find
 * begins the file's next generation; generation 0 is the first.
 *
 * <p>The next process of the session loads the generations, and the ones that the kernel was shown.
 * Thread-safe.
 */
final class Contradictions {
  private static final String KEY = "generation/";
  private static final String REPLACED = "inodes-replaced-in-session";

  private static final int SESSION_SHIFT = 32;
  private static final int SHOWN = 1 << 8;

  private final Namespace namespace;
  private final InodeBytes generations = new InodeBytes();
  private final InodeBytes shownBefore = new InodeBytes();

  Contradictions(Namespace namespace) {
    this.namespace = namespace;
    for (Map.Entry<String, Long> each : namespace.counters(KEY).entrySet()) {
      long value = each.getValue();
      if (value >>> SESSION_SHIFT == namespace.session()) {
        long number = Long.parseLong(each.getKey());
        generations.set(number, (byte) value);
        shownBefore.set(number, (byte) ((value & SHOWN) == 0 ? 0 : value));
      } else {
        namespace.removeCounter(KEY + each.getKey());
      }
    }
  }

  void replaceInodes() {
    namespace.putCounter(REPLACED, namespace.session());
  }

  boolean replacesInodes() {
    Long replaced = namespace.counter(REPLACED);
    return replaced != null && replaced == namespace.session();
  }

  byte generation(long number) {
    return generations.get(number);
  }

  /** Begins a generation. After 255 of them, the numbers repeat from 1. */
  synchronized void add(long number) {
    byte next = (byte) (generations.get(number) + 1);
    next = next == 0 ? 1 : next;
    put(number, next, 0);
    generations.set(number, next);
  }

  /** Records that the kernel is shown a generation. */
  synchronized void shown(long number, byte generation) {
    if (generations.get(number) == generation) {
      put(number, generation, SHOWN);
    }
  }

  private void put(long number, byte generation, int flag) {
    long session = (long) namespace.session() << SESSION_SHIFT;
    namespace.putCounter(KEY + number, session | flag | Byte.toUnsignedInt(generation));
  }

  /** What a kernel that serves this session was shown by former processes. */
  ShownFiles shownFiles() {
    InodeBytes shown = new InodeBytes();
    for (long number = shownBefore.next(0); number >= 0; number = shownBefore.next(number + 1)) {
      shown.set(number, shownBefore.get(number));
    }
    return new ShownFiles(this, shown);
  }
}
