package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Four nodes behind slow links read one large file at the same time. */
@OnRequest("cluster")
final class LargeFileTogetherIT {
  private static final int BYTES = 96 << 20;
  private static final int LINK_BYTES_PER_SECOND = 25_000_000;

  private ClusterBed bed;

  @BeforeEach
  void make() {
    Machine.requireFuse();
    Nodes.require();
    Nodes.requireThrottle();
    bed = new ClusterBed(4, BYTES);
  }

  @AfterEach
  void remove() {
    if (bed != null) {
      bed.close();
    }
  }

  private void read(Node node) {
    bed.dataset().assertEqualBelow(node.mounted().mountpoint());
  }

  private static long served(Node node) {
    return node.mounted().status().number("cluster.served.bytes");
  }

  @Test
  void read_byAllAtOnce_leavesTheSourceOnceAndEachNodeHardlyMore() {
    bed.mountAll(ClusterBed.PATIENT.toArray(String[]::new));
    bed.nodes().forEach(node -> node.throttle(LINK_BYTES_PER_SECOND));
    assertThat(bed.askedBy(() -> bed.onAll(this::read)).bytes()).isEqualTo(BYTES);
    assertThat(bed.sum("cluster.served.bytes")).isGreaterThanOrEqualTo(3L * BYTES);
    for (Node node : bed.nodes()) {
      assertThat(served(node)).as("%s", node).isLessThan(2L * BYTES);
    }
  }

  @Test
  void read_whileOneOfThemIsKilled_isWholeOnTheOthers() {
    bed.mountAll();
    bed.nodes().forEach(node -> node.throttle(LINK_BYTES_PER_SECOND));
    List<CompletableFuture<Void>> reads = new ArrayList<>();
    for (Node node : bed.nodes()) {
      CompletableFuture<Void> read = new CompletableFuture<>();
      reads.add(read);
      new Thread(
              () -> {
                try {
                  read(node);
                  read.complete(null);
                } catch (Throwable e) {
                  read.completeExceptionally(e);
                }
              },
              "on " + node)
          .start();
    }
    Node[] victim = new Node[1];
    Await.until(
        "a node passes blocks on",
        Duration.ofSeconds(60),
        () -> {
          for (Node node : bed.nodes()) {
            boolean isOwner = node.mounted().status().number("sourceOperations.bytes") > 0;
            if (!isOwner && served(node) > BYTES / 16) {
              victim[0] = node;
            }
          }
          return victim[0] != null;
        });
    victim[0].kill9();
    for (Node node : bed.nodes()) {
      if (node != victim[0]) {
        reads.get(bed.nodes().indexOf(node)).join();
      }
    }
    // It had blocks that nobody else had: the owner has them, so the source is not read again.
    assertThat(bed.sum("sourceOperations.bytes")).isEqualTo(BYTES);
  }
}
