package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cluster.client.PeerClient;
import io.pmfs.memory.CollectingSink;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.Await;
import io.pmfs.stage.copies.RemoteCopies;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
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
        .filter(path -> node.owners.isOwn(FileName.of(path)))
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

  /** Gives blocks after a file's first only once they are released. */
  private static PeerClient firstBlocks(PeerClient honest, CountDownLatch release) {
    return (PeerClient)
        Proxy.newProxyInstance(
            PeerClient.class.getClassLoader(),
            new Class<?>[] {PeerClient.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("fetch") && (Long) arguments[3] > 0) {
                release.await();
              }
              try {
                return method.invoke(honest, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  /** The owner has its first block, and gives it, while it needs the others from this node. */
  @Test
  void look_ownerHasOnlyTheFirstBlock_keepsTheCopy() throws Exception {
    CountDownLatch release = new CountDownLatch(1);
    try (TestNodes nodes =
        new TestNodes(
            directory, RemoteCopies.NEVER, 1, 1 << 30, honest -> firstBlocks(honest, release))) {
      nodes.store.directory("d");
      TestNodes.Node one = nodes.add();
      TestNodes.Node two = nodes.add();
      nodes.meet();
      String path = "d/f";
      while (!two.owners.isOwn(FileName.of(path))) {
        path += "f";
      }
      nodes.store.file(path, 1, 4 << 20);
      nodes.meet(one);
      one.readAll();
      one.awaitIdle();
      nodes.meet();
      Inode inode = two.fs.inode(two.number(path));
      try {
        two.fs.open(inode.number());
        two.fs.read(inode.number(), 0, 1, new CollectingSink());
        assertThat(two.stager.blocksBeingCopied(inode)).isNotNull();

        lonely(one).look();
        assertThat(one.hasCopy(path)).isTrue();
      } finally {
        release.countDown();
      }
      Await.until("the owner has its copy, and this node has none", () -> lonely(one).look() == 0);
      assertThat(one.hasCopy(path)).isFalse();
      // It has each block by then, and records the copy at once.
      Await.until("the owner has recorded its copy", () -> two.copies.has(inode));
    }
  }
}
