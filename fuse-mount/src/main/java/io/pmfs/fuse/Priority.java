package io.pmfs.fuse;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** How much of the processors a thread gets when there are too few. */
public final class Priority {
  private static final Logger log = LoggerFactory.getLogger(Priority.class);

  private static final int PRIO_PROCESS = 0;

  /**
   * A thread of it gets a ninth of what one of 0 gets (sched(7): each step is a factor of 1.25).
   */
  private static final int LOW = 10;

  private Priority() {}

  /**
   * Lowers that of the calling thread, for good: setpriority(2) of process 0 is that of the thread
   * on Linux. Work goes on as it is where that is refused.
   */
  public static void lower() {
    if (LibC.INSTANCE.setpriority(PRIO_PROCESS, 0, LOW) != 0) {
      log.debug("the priority stays: {}", Posix.errno());
    }
  }
}
