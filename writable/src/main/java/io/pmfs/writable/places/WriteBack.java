package io.pmfs.writable.places;

import io.pmfs.posix.DaemonThread;
import io.pmfs.writable.OutputCalls;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Has a disk begin to write large files while programs still write them, so that their fsync finds
 * little left to do. By itself the kernel waits until a share of the memory is dirty. Thread-safe.
 */
final class WriteBack {
  private static final long IDLE_SECONDS = 10;

  private final OutputCalls calls;
  private final Set<Integer> waiting = ConcurrentHashMap.newKeySet();

  /** One, as it waits while the disk is busy. */
  private final ThreadPoolExecutor thread =
      new ThreadPoolExecutor(
          1,
          1,
          IDLE_SECONDS,
          TimeUnit.SECONDS,
          new LinkedBlockingQueue<>(),
          work -> DaemonThread.of("pmfs-write-back", work));

  WriteBack(OutputCalls calls) {
    this.calls = calls;
    thread.allowCoreThreadTimeOut(true);
  }

  /**
   * Begins with what was written to an open file so far; never waits. The file may be closed
   * meanwhile: if its descriptor is another file's then, that one's pages are written early.
   */
  void begin(int file) {
    if (!waiting.add(file)) {
      return;
    }
    try {
      thread.execute(
          () -> {
            waiting.remove(file);
            calls.beginWriteBack(file);
          });
    } catch (OutOfMemoryError e) {
      // No thread can be started: the kernel begins when it likes.
      waiting.remove(file);
    }
  }
}
