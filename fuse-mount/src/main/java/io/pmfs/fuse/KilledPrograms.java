package io.pmfs.fuse;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ends the waiting requests of killed programs: the kernel lets no program end whose request a
 * worker has taken (fs/fuse/dev.c, request_wait_answer), and a source that hangs may never answer.
 */
final class KilledPrograms {
  private static final Logger log = LoggerFactory.getLogger(KilledPrograms.class);

  private static final long PAUSE_MILLIS = 500;
  private static final long WAITING_NANOS = TimeUnit.SECONDS.toNanos(1);

  /** The pending signals of a thread in hexadecimal (proc_pid_status(5)). */
  private static final String PENDING = "SigPnd:";

  /** Of SIGKILL; each signal that ends a program is one for its threads (kernel/signal.c). */
  private static final long KILL = 1L << 8;

  private static final int HEXADECIMAL = 16;

  private final List<KernelWorker> workers;
  private final BooleanSupplier isServing;

  /**
   * The programs of one session.
   *
   * @param workers of the session; may change meanwhile
   */
  KilledPrograms(List<KernelWorker> workers, BooleanSupplier isServing) {
    this.workers = workers;
    this.isServing = isServing;
  }

  /**
   * Starts the thread that looks for them until the session ends.
   *
   * @throws OutOfMemoryError if the thread cannot be started
   */
  void start() {
    DaemonThread.lasting("fuse-killed", this::run).start();
  }

  private void run() {
    try {
      while (isServing.getAsBoolean()) {
        Thread.sleep(PAUSE_MILLIS);
        look();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void look() {
    long now = System.nanoTime();
    for (KernelWorker worker : workers) {
      try {
        worker.endIfKilled(WAITING_NANOS, now, KilledPrograms::isKilled);
      } catch (FsException e) {
        log.warn("a killed program goes on waiting: {}", e.getMessage());
      }
    }
  }

  /** Whether a thread was killed; false if that is unknown. */
  private static boolean isKilled(long thread) {
    return isKilled(Path.of("/proc/" + thread + "/status"));
  }

  static boolean isKilled(Path status) {
    try {
      // The line of the name may have any bytes.
      return isKilled(Files.readAllLines(status, ISO_8859_1));
    } catch (IOException e) {
      return false; // It has ended, or is hidden (hidepid).
    }
  }

  static boolean isKilled(List<String> status) {
    return status.stream()
        .filter(line -> line.startsWith(PENDING))
        .map(line -> line.substring(PENDING.length()).strip())
        .anyMatch(signals -> (Long.parseUnsignedLong(signals, HEXADECIMAL) & KILL) != 0);
  }
}
