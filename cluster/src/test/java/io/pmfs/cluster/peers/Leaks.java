package io.pmfs.cluster.peers;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.PooledByteBufAllocator;
import java.util.Collection;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Netty's buffers that were collected without having been released. */
public final class Leaks {
  private static final Collection<String> SEEN = new ConcurrentLinkedQueue<>();

  private Leaks() {}

  public static void watch() {
    ByteBufUtil.setLeakListener((type, records) -> SEEN.add(type + " " + records));
  }

  public static void assertNone() throws InterruptedException {
    for (int i = 0; i < 3; i++) {
      System.gc();
      Thread.sleep(50);
      // Netty looks for leaks when it allocates.
      PooledByteBufAllocator.DEFAULT.buffer(64).release();
    }
    assertThat(SEEN).isEmpty();
  }
}
