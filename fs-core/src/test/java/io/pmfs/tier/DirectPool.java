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

  /** The bytes in use now, including those the collector has not freed yet. */
  public static long bytes() {
    return POOL.getTotalCapacity();
  }
}
