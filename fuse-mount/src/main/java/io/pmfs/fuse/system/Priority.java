package io.pmfs.fuse.system;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The share of the processors that a thread gets when there are too few. */
public final class Priority {
  private static final Logger log = LoggerFactory.getLogger(Priority.class);

  private static final int PRIO_PROCESS = 0;

  /**
   * A thread with this nice value gets a ninth of what one with 0 gets (sched(7): each step is a
   * factor of 1.25).
   */
  private static final int LOW = 10;

  private static final int LOWEST = 19;

  private static final Path THREADS = Path.of("/proc/self/task");

  /** The name of the threads of HotSpot's optimizing compiler; the kernel keeps 15 characters. */
  private static final String OPTIMIZER = "C2 CompilerThre";

  private Priority() {}

  /**
   * Permanently lowers the calling thread's priority: on Linux, setpriority(2) of process 0 applies
   * to the thread. If that is refused, the work continues at the same priority. A thread that has a
   * lower one already, as under nice(1), keeps it.
   */
  public static void lower() {
    int nice = Math.max(LOW, LibC.INSTANCE.getpriority(PRIO_PROCESS, 0));
    if (LibC.INSTANCE.setpriority(PRIO_PROCESS, 0, nice) != 0) {
      log.debug("cannot lower the priority: {}", Posix.errno());
    }
  }

  /**
   * Permanently gives this JVM's optimizing compiler only the time that no other thread of the
   * machine wants. The compiler takes some seconds of it in the first minutes of a process. The
   * code runs without it, only slower, and loaders that keep all processors busy must not wait for
   * it. A JVM without that compiler stays as it is.
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
