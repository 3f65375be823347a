package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cluster.peers.PeerException;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.posix.Requested;
import io.pmfs.source.FaultyStore.Operation;
import io.pmfs.source.SourceOperations;
import io.pmfs.stage.copies.RemoteCopies;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * One node sees some files as they were earlier. The others read what there is; it reads what its
 * own source shows, or what there is; and no node has a mixture.
 */
final class LaggingSourceTest {
  private static final int FILES = 24;
  private static final int CHANGED = 12;
  private static final int SMALL = 10_000;
  private static final int LARGE = 1_200_000;

  private TestNodes nodes;

  @TempDir Path directory;

  @BeforeEach
  void prepare() {
    nodes = new TestNodes(directory, RemoteCopies.NEVER, 1, 0);
  }

  private void start(int count, int replicas, RemoteCopies remoteCopies, long capacity)
      throws Exception {
    nodes.close();
    Path place = Files.createTempDirectory(directory, "nodes");
    nodes = new TestNodes(place, remoteCopies, replicas, capacity);
    for (int i = 0; i < count; i++) {
      nodes.add();
    }
    for (int i = 0; i < FILES; i++) {
      int size = i % 4 == 0 ? LARGE : SMALL;
      nodes.store.file("f" + i, i, size);
      nodes.before.file("f" + i, i, size);
    }
    for (int i = 0; i < CHANGED; i++) {
      int size = i % 4 == 0 ? LARGE : SMALL;
      int other = i % 3 == 0 ? size : i % 3 == 1 ? size / 2 : size * 2;
      nodes.store.write("f" + i, 1000 + i, other);
    }
    nodes.meet();
  }

  @AfterEach
  void stop() {
    nodes.close();
  }

  private static boolean isChanged(FileName path) {
    String name = path.toString();
    return name.startsWith("f") && Integer.parseInt(name.substring(1)) < CHANGED;
  }

  /** The files as they were. */
  private Map<String, byte[]> earlier() {
    Map<String, byte[]> earlier = new TreeMap<>();
    nodes
        .expected()
        .forEach(
            (name, now) -> {
              FileName path = FileName.of(name);
              int size = Math.toIntExact(nodes.before.expectedStatus(path).attributes().size());
              earlier.put(name, nodes.before.expected(path, 0, size));
            });
    return earlier;
  }

  private void assertAllNew(TestNodes.Node node) throws Exception {
    assertThat(TestNodes.difference(nodes.expected(), node.readAll())).isNull();
  }

  private void assertOldOrNew(TestNodes.Node node) throws Exception {
    Map<String, byte[]> earlier = earlier();
    Map<String, byte[]> now = nodes.expected();
    node.readAll()
        .forEach(
            (name, bytes) ->
                assertThat(
                        Arrays.equals(bytes, earlier.get(name))
                            || Arrays.equals(bytes, now.get(name)))
                    .as("%s: %d bytes of one version", name, bytes.length)
                    .isTrue());
  }

  /** From this node, each file that has no copy changes now: what is open of it is stale. */
  private void assertOldOrNewAtLast(TestNodes.Node node) throws Exception {
    for (int i = 0; i < CHANGED; i++) {
      try {
        node.read("f" + i);
      } catch (FsException e) {
        assertThat(e.errno()).isEqualTo(Errno.ESTALE);
      }
    }
    assertOldOrNew(node);
  }

  @ParameterizedTest
  @CsvSource({
    "2, 1, KEEP",
    "3, 1, NEVER",
    "3, 1, KEEP",
    "3, 2, KEEP",
    "4, 3, AUTO",
    "4, 1, NEVER",
  })
  void read_whileOneNodeLags_isOfOneVersionEverywhere(
      int count, int replicas, RemoteCopies remoteCopies) throws Exception {
    Requested.assume("cluster", count < 4 || replicas > 1, "the same of more nodes");
    for (int lagging = 0; lagging < count; lagging++) {
      start(count, replicas, remoteCopies, 1L << 30);
      nodes.nodes.get(lagging).view.lagBehind(LaggingSourceTest::isChanged);
      // It reads first, in the middle, or last.
      for (int i = 0; i < count; i++) {
        if (i == lagging) {
          assertOldOrNew(nodes.nodes.get(i));
        } else {
          assertAllNew(nodes.nodes.get(i));
        }
      }
      for (TestNodes.Node node : nodes.nodes) {
        node.awaitIdle();
      }
      nodes.nodes.get(lagging).view.catchUp();
      for (int i = 0; i < count; i++) {
        if (i == lagging) {
          assertOldOrNewAtLast(nodes.nodes.get(i));
        } else {
          assertAllNew(nodes.nodes.get(i));
        }
      }
      nodes.restart();
      nodes.meet();
      for (TestNodes.Node node : nodes.nodes) {
        assertAllNew(node);
      }
    }
  }

  /** Each node sees numbers of its own, and others after it was mounted again. */
  @ParameterizedTest
  @CsvSource({"2, 1, KEEP", "3, 1, NEVER", "3, 2, AUTO"})
  void read_whereNodesSeeOtherNumbers_isOfOneVersionEverywhere(
      int count, int replicas, RemoteCopies remoteCopies) throws Exception {
    start(count, replicas, remoteCopies, 1L << 30);
    renumber(0);
    nodes.nodes.get(1).view.lagBehind(LaggingSourceTest::isChanged);
    for (int i = 0; i < count; i++) {
      if (i == 1) {
        assertOldOrNew(nodes.nodes.get(i));
      } else {
        assertAllNew(nodes.nodes.get(i));
      }
    }
    nodes.restart();
    renumber(1);
    nodes.meet();
    for (TestNodes.Node node : nodes.nodes) {
      // A name that was listed before its file was found to be another is looked up again.
      assertOldOrNewAtLast(node);
      assertAllNew(node);
      node.awaitIdle();
    }
    nodes.restart();
    renumber(2);
    nodes.meet();
    long before = nodes.asked(SourceOperations::bytes);
    for (TestNodes.Node node : nodes.nodes) {
      assertAllNew(node);
    }
    assertThat(nodes.asked(SourceOperations::bytes)).as("read again").isEqualTo(before);
  }

  private void renumber(int round) {
    for (int i = 0; i < nodes.nodes.size(); i++) {
      int mask = 16 * round + i + 1;
      nodes.nodes.get(i).view.renumber(inode -> inode ^ mask);
    }
  }

  /** The files changed since the last session, from which all nodes have copies. */
  @ParameterizedTest
  @CsvSource({"2, 0, KEEP", "3, 1, KEEP", "3, 2, NEVER"})
  void copies_ofAnEarlierSession_areNoWitnesses(int count, int lagging, RemoteCopies remoteCopies)
      throws Exception {
    start(count, 1, remoteCopies, 1L << 30);
    for (TestNodes.Node node : nodes.nodes) {
      assertAllNew(node);
      node.awaitIdle();
    }
    for (int i = 0; i < CHANGED; i++) {
      // What all see now is what the one will see later.
      long size = nodes.store.expectedStatus(FileName.of("f" + i)).attributes().size();
      nodes.before.write("f" + i, 1000 + i, size);
      nodes.store.write("f" + i, 2000 + i, size / 2);
    }
    nodes.restart();
    nodes.nodes.get(lagging).view.lagBehind(LaggingSourceTest::isChanged);
    nodes.meet();
    for (int i = 0; i < count; i++) {
      if (i == lagging) {
        assertOldOrNew(nodes.nodes.get(i));
      } else {
        assertAllNew(nodes.nodes.get(i));
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"2, 0", "3, 0", "3, 1", "3, 2"})
  void copies_madeWhileOneNodeLags_areOfTheFilesThereAre(int count, int lagging) throws Exception {
    start(count, 1, RemoteCopies.KEEP, 1L << 30);
    nodes.nodes.get(lagging).view.lagBehind(LaggingSourceTest::isChanged);
    for (TestNodes.Node node : nodes.nodes) {
      node.readAll();
      node.awaitIdle();
    }
    for (int i = 0; i < count; i++) {
      if (i != lagging) {
        TestNodes.Node node = nodes.nodes.get(i);
        nodes.fault =
            (from, to) -> {
              throw new PeerException(PeerException.Kind.UNREACHABLE, "cut");
            };
        node.faulty.on(Operation.OPEN, Operation.READ).fail(Errno.EIO);
        assertAllNew(node);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"3, 0", "3, 1"})
  void read_withoutRoomForCopies_isOfOneVersionToo(int count, int lagging) throws Exception {
    start(count, 1, RemoteCopies.KEEP, 4096);
    nodes.nodes.get(lagging).view.lagBehind(LaggingSourceTest::isChanged);
    for (int round = 0; round < 2; round++) {
      for (int i = 0; i < count; i++) {
        if (i == lagging) {
          assertOldOrNew(nodes.nodes.get(i));
        } else {
          assertAllNew(nodes.nodes.get(i));
        }
      }
    }
  }
}
