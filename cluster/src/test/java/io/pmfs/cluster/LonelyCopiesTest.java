package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.stage.copies.RemoteCopies;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class LonelyCopiesTest {
  private static final int FILES = 20;

  @TempDir Path directory;

  private static LonelyCopies lonely(TestNodes.Node node) {
    return new LonelyCopies(
        node.stager, node.namespace, node.owners, node, node.peers::isSuspected);
  }

  private static List<String> copied(TestNodes nodes, TestNodes.Node node) throws Exception {
    node.awaitIdle();
    List<String> found = new java.util.ArrayList<>();
    for (String path : nodes.expected().keySet()) {
      if (node.hasCopy(path)) {
        found.add(path);
      }
    }
    return found;
  }

  private static List<String> owned(TestNodes nodes, TestNodes.Node node) {
    return nodes.expected().keySet().stream()
        .filter(path -> node.owners.isOwn(io.pmfs.metadata.FileName.of(path)))
        .toList();
  }

  @Test
  void look_othersAreBack_leavesEachFileWhereItBelongsWithoutTheSource() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.NEVER, 1, 1 << 30)) {
      nodes.store.directory("d");
      for (int i = 0; i < FILES; i++) {
        nodes.store.file("d/f%02d".formatted(i), i, 1 + i * 30_000);
      }
      TestNodes.Node one = nodes.add();
      TestNodes.Node two = nodes.add();
      nodes.meet(one);
      one.readAll();
      assertThat(copied(nodes, one)).hasSize(FILES);
      long before = nodes.asked(operations -> operations.bytes());

      nodes.meet();
      LonelyCopies lonely = lonely(one);
      AtomicLong left = new AtomicLong();
      Await.until(
          "all other copies are dropped",
          () -> {
            left.set(lonely.look());
            return left.get() == 0;
          });

      assertThat(copied(nodes, one)).isEqualTo(owned(nodes, one)).hasSizeBetween(1, FILES - 1);
      assertThat(copied(nodes, two)).isEqualTo(owned(nodes, two));
      assertThat(nodes.asked(operations -> operations.bytes())).isEqualTo(before);
    }
  }

  @Test
  void look_ownerIsAway_keepsItsFiles() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.NEVER, 1, 1 << 30)) {
      nodes.store.directory("d");
      for (int i = 0; i < FILES; i++) {
        nodes.store.file("d/f%02d".formatted(i), i, 1 + i * 1_000);
      }
      TestNodes.Node one = nodes.add();
      TestNodes.Node two = nodes.add();
      nodes.meet(one);
      one.readAll();
      assertThat(copied(nodes, one)).hasSize(FILES);
      nodes.meet();
      two.close();

      long left = lonely(one).look();

      assertThat(left).isEqualTo(FILES - owned(nodes, one).size());
      assertThat(copied(nodes, one)).hasSize(FILES);
    }
  }
}
