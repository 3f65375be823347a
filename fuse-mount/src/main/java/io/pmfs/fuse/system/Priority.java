package io.pmfs.fuse.system;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A thread's share of busy processors. */
public final class Priority {
  private static final Logger log = LoggerFactory.getLogger(Priority.class);

  private static final int PRIO_PROCESS = 0;

  /**
   * A thread with this nice value gets a ninth of what one with 0 gets (sched(7): each step is a
   * factor of 1.25).
   */
  private static final int LOW = 10;

  private static final int LOWEST = 19;

  private static final int SCHED_OTHER = 0;

  /** As SCHED_OTHER, but a thread that wakes up does not take a processor from another one. */
  private static final int SCHED_BATCH = 3;

  private static final Path THREADS = Path.of("/proc/self/task");

  /** The name of the threads of HotSpot's optimizing compiler; the kernel keeps 15 characters. */
  private static final String OPTIMIZER = "C2 CompilerThre";

  private Priority() {}

  /**
   * Permanently lowers the calling thread's priority: on Linux, setpriority(2) and
   * sched_setscheduler(2) of process 0 apply to the thread. It then gets less of a busy processor,
   * and does not interrupt another thread when it wakes up. Failure is ignored. A thread with an
   * even lower priority, as under nice(1) or chrt(1), keeps it.
   */
  public static void lower() {
    int nice = Math.max(LOW, LibC.INSTANCE.getpriority(PRIO_PROCESS, 0));
    if (LibC.INSTANCE.setpriority(PRIO_PROCESS, 0, nice) != 0) {
      log.debug("cannot lower the priority: {}", Posix.errno());
    }
    if (LibC.INSTANCE.sched_getscheduler(0) == SCHED_OTHER
        && LibC.INSTANCE.sched_setscheduler(0, SCHED_BATCH, new int[1]) != 0) {
      log.debug("cannot lower the scheduling policy: {}", Posix.errno());
    }
  }

  /**
   * Permanently makes this JVM's optimizing compiler use only idle processor time. It uses some
   * seconds in the first minutes of a process; code runs without it, only slower, and loaders that
   * keep all processors busy must not wait for it. Does nothing in a JVM without that compiler.
   */
  public static void lowerOptimizer() {
    try (DirectoryStream<Path> threads = Files.newDirectoryStream(THREADS)) {
      for (Path thread : threads) {
        if (isOptimizer(thread)
            && LibC.INSTANCE.setpriority(
                    PRIO_PROCESS, Integer.parseInt(String.valueOf(thread.getFileName())), LOWEST)
                != 0) {
          log.debug("cannot lower the compiler's priority: {}", Posix.errno());
        }
      }
    } catch (IOException e) {
      log.debug("cannot find the compiler's threads: {}", e.getMessage());
    }
  }

  private static boolean isOptimizer(Path thread) throws IOException {
    return Files.readString(thread.resolve("comm")).startsWith(OPTIMIZER);
  }
}
