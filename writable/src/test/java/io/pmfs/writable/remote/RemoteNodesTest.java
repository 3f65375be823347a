package io.pmfs.writable.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.writable.NodeData;
import java.io.IOException;
import java.time.Instant;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class RemoteNodesTest {
  private static final long PATIENCE_MILLIS = 100;
  private static final NodeData.Id FILE = new NodeData.Id(7, 1);

  /** A node works on a request for a while, and then its daemon is replaced. */
  @Test
  void request_thatTakesLongerThanANodeMayBeAway_isRepeated() throws Exception {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MILLIS);
    AtomicInteger asked = new AtomicInteger();
    RemoteNodes nodes =
        new RemoteNodes(
            (node, name, body) -> {
              if (asked.incrementAndGet() == 1) {
                Await.until("the patience is over", () -> System.nanoTime() > end);
                throw new IOException("connection reset");
              }
              return Message.sealed(Message.answer(Message.Kind.RESULT));
            },
            PATIENCE_MILLIS);
    nodes.on(new UUID(1, 2), "node2").setTimes(FILE, Instant.EPOCH, Instant.EPOCH);
    assertThat(asked).hasValue(2);
  }
}
