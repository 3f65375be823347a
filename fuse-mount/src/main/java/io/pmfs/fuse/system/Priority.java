package io.pmfs.fuse.system;

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
}
