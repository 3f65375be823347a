package io.pmfs.tier;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;

/** The direct memory of this JVM, as it counts it. */
public final class DirectPool {
  private static final BufferPoolMXBean POOL =
      ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
          .filter(pool -> pool.getName().equals("direct"))
          .findAny()
          .orElseThrow();

  private DirectPool() {}

  /** What is taken now, with what the collector has not freed yet. */
  public static long bytes() {
    return POOL.getTotalCapacity();
  }
}
