package io.pmfs.posix;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Which {@linkplain DaemonThread#lasting lasting} threads of this process have failed recently.
 * Thread-safe.
 */
public final class Troubles {
  /** Three times the longest pause of a thread. */
  private static final long RECENT_NANOS = TimeUnit.SECONDS.toNanos(30);

  /** More than there are lasting threads. */
  private static final int MOST = 256;

  private static final Map<String, Trouble> BY_THREAD = new ConcurrentHashMap<>();

  private record Trouble(String reason, long nanos) {
    boolean isRecent() {
      return System.nanoTime() - nanos < RECENT_NANOS;
    }
  }

  private Troubles() {}

  static void add(String thread, Throwable why) {
    if (BY_THREAD.size() < MOST || BY_THREAD.containsKey(thread)) {
      BY_THREAD.put(thread, new Trouble(why.toString(), System.nanoTime()));
    }
  }

  /** A thread that failed in the last half minute, and why; null if there is none. */
  public static @Nullable String recent() {
    for (Map.Entry<String, Trouble> entry : BY_THREAD.entrySet()) {
      if (entry.getValue().isRecent()) {
        return "thread " + entry.getKey() + ": " + entry.getValue().reason();
      }
    }
    return null;
  }
}
