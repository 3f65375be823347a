package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.server.PeerService;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.memory.CollectingSink;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.FaultyStore.Operation;
import io.pmfs.source.ForwardingStore;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceOperations;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.copies.RemoteCopies;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.tasks.FileTask;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskRequest;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

final class PeerStoreTest {
  private static final int DIRECTORIES = 5;
  private static final int FILES = 20;
  private static final long AMPLE = 1L << 30;
  private static final long LARGE = 24 << 20;

  @TempDir Path directory;

  /** Directories with small files, some of several blocks. */
  private static long tree(TestNodes nodes) {
    long bytes = 0;
    for (int d = 0; d < DIRECTORIES; d++) {
      nodes.store.directory("d" + d);
      for (int f = 0; f < FILES; f++) {
        long size = f == 0 ? 2_500_000 : 5_000 + 100 * f;
        nodes.store.file("d%d/f%02d".formatted(d, f), d * FILES + f, size);
        bytes += size;
      }
    }
    return bytes;
  }

  private static void readEverywhere(TestNodes nodes) throws Exception {
    ExecutorService threads = Executors.newCachedThreadPool();
    try {
      List<Future<Map<String, byte[]>>> reads = new ArrayList<>();
      for (TestNodes.Node node : nodes.nodes) {
        reads.add(threads.submit(node::readAll));
      }
      Map<String, byte[]> expected = nodes.expected();
      for (Future<Map<String, byte[]>> read : reads) {
        assertThat(TestNodes.difference(expected, read.get())).isNull();
      }
    } finally {
      threads.shutdownNow();
    }
    for (TestNodes.Node node : nodes.nodes) {
      node.awaitIdle();
    }
  }

  @Test
  void access_ofAFile_asksTheNodesOwnSourceAlone() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.NEVER, 1, AMPLE)) {
      tree(nodes);
      byte[] list = {2, 0, 0, 0};
      nodes.store.xattr("d0/f01", PosixAcl.ACCESS.toString(), list);
      for (int i = 0; i < 3; i++) {
        nodes.add();
      }
      nodes.meet();
      for (TestNodes.Node node : nodes.nodes) {
        long before = node.asked().xattrs();
        assertThat(node.peers.access(FileName.of("d0/f01")).list()).isEqualTo(FileName.of(list));
        assertThat(node.asked().xattrs()).isEqualTo(before + 1);
      }
      assertThat(nodes.asked(SourceOperations::xattrs)).isEqualTo(3);
    }
  }

  @Test
  void open_anErrorBeforeTheFileIsKnown_closesIt() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.NEVER, 1, AMPLE)) {
      tree(nodes);
      TestNodes.Node node = nodes.add();
      AtomicInteger open = new AtomicInteger();
      BackingStore failing =
          new ForwardingStore(nodes.store) {
            @Override
            public SourceFile open(FileName path) throws FsException {
              open.incrementAndGet();
              return new ForwardingFile(super.open(path)) {
                @Override
                public SourceStatus status() {
                  throw new OutOfMemoryError("of the test");
                }

                @Override
                public void close() {
                  open.decrementAndGet();
                  super.close();
                }
              };
            }
          };
      PeerQuestions questions =
          new PeerQuestions(node.owners, node.suspects, node.withoutSource, Duration.ofSeconds(1));
      FileName path = FileName.of("d0/f01");
      SourceVersion version = nodes.store.expectedStatus(path).attributes().version();
      try (PeerStore peers =
              new PeerStore(failing, node.owners, node, questions, false, Duration.ofSeconds(1));
          SourceFile file = peers.openVersion(path, version)) {
        assertThatThrownBy(() -> file.seekData(0)).isInstanceOf(OutOfMemoryError.class);
        assertThat(open).hasValue(0);
      }
    }
  }

  @Test
  void list_oneFileIsBeyondDescription_hasAllNamesOnEachNodeAndItsErrorEachTime() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.NEVER, 1, AMPLE)) {
      tree(nodes);
      for (int i = 0; i < 3; i++) {
        nodes.add();
        nodes.nodes.get(i).faulty.on(Operation.STATUS).of("d0/f01").fail(Errno.EIO);
      }
      nodes.meet();
      for (TestNodes.Node node : nodes.nodes) {
        long d0 = node.fs.find(PmfsFileSystem.ROOT, FileName.of("d0")).inode();
        List<DirectoryEntry> entries = new ArrayList<>();
        node.fs.list(d0, 0, entries::add);
        assertThat(entries).hasSize(FILES);
        for (DirectoryEntry entry : entries) {
          if (!entry.name().equals(FileName.of("f01"))) {
            node.read("d0/" + entry.name());
          }
        }
        for (int i = 0; i < 2; i++) {
          assertThatThrownBy(() -> node.read("d0/f01")).hasMessageContaining("EIO");
        }
      }
      nodes.nodes.forEach(node -> node.faulty.clearFaults());
      for (TestNodes.Node node : nodes.nodes) {
        node.read("d0/f01"); // shows that it is a regular file
        assertThat(TestNodes.difference(nodes.expected(), node.readAll())).isNull();
      }
    }
  }

  private static long blocks(TestNodes nodes) {
    return nodes.expected().values().stream()
        .mapToLong(bytes -> (bytes.length + Blocks.SIZE - 1) / Blocks.SIZE)
        .sum();
  }

  /** How many files have the owner of their directory. */
  private static long ofOne(TestNodes nodes) {
    Owners owners = nodes.nodes.get(0).owners;
    return nodes.expected().keySet().stream()
        .map(FileName::of)
        .filter(path -> owners.of(path).get(0).equals(owners.of(Paths.parent(path)).get(0)))
        .count();
  }

  @ParameterizedTest
  @EnumSource(RemoteCopies.class)
  void read_everythingOnFourNodesAtOnce_leavesTheSourceOnce(RemoteCopies copies) throws Exception {
    try (TestNodes nodes = new TestNodes(directory, copies, 1, AMPLE)) {
      long bytes = tree(nodes);
      for (int i = 0; i < 4; i++) {
        nodes.add();
      }
      nodes.meet();
      long rootLooks = nodes.asked(SourceOperations::stats);

      readEverywhere(nodes);

      assertThat(nodes.asked(SourceOperations::bytes)).isEqualTo(bytes);
      assertThat(nodes.asked(SourceOperations::lists)).isEqualTo(DIRECTORIES + 1);
      long files = (long) DIRECTORIES * FILES;
      assertThat(nodes.asked(SourceOperations::opens)).isEqualTo(files);
      // Each name; each directory, also the root, once more after it was listed; each file before
      // it was read and after each of its blocks; and by each other node, if one node has both
      // described it and read it.
      // Parts of a large file may also come from the node that described it.
      long stats = nodes.asked(SourceOperations::stats) - rootLooks;
      long least =
          (DIRECTORIES + files) + (DIRECTORIES + 1) + files + blocks(nodes) + 3 * ofOne(nodes);
      assertThat(stats).isBetween(least, least + 3 * DIRECTORIES);
      long before = nodes.asked(SourceOperations::total);

      readEverywhere(nodes);

      assertThat(nodes.asked(SourceOperations::total)).isEqualTo(before);
      for (TestNodes.Node node : nodes.nodes) {
        boolean all = true;
        for (String path : nodes.expected().keySet()) {
          all &= node.hasCopy(path);
        }
        assertThat(all).as("has a copy of everything").isEqualTo(copies != RemoteCopies.NEVER);
      }
    }
  }

  @Test
  void read_whenOnlyTheSumOfTheTiersFits_asksTheSourceForNothingInTheSecondEpoch()
      throws Exception {
    List<Integer> order = new ArrayList<>();
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.AUTO, 1, 40 * 8_192)) {
      // 100 files of 8 KiB, in tiers of 40 each.
      nodes.store.directory("d");
      for (int i = 0; i < 100; i++) {
        nodes.store.file("d/f%02d".formatted(i), i, 8_192);
        order.add(i);
      }
      for (int i = 0; i < 4; i++) {
        nodes.add();
      }
      nodes.meet();
      for (int epoch = 0; epoch < 2; epoch++) {
        for (TestNodes.Node node : nodes.nodes) {
          Collections.shuffle(order, new Random(epoch * 10L + node.member.instance()));
          for (int i : order) {
            assertThat(node.read("d/f%02d".formatted(i)))
                .isEqualTo(nodes.expected().get("d/f%02d".formatted(i)));
            node.awaitIdle();
          }
        }
      }
      long before = nodes.asked(SourceOperations::bytes);
      assertThat(before).isBetween(100L * 8_192, 102L * 8_192);

      readEverywhere(nodes);

      assertThat(nodes.asked(SourceOperations::bytes)).isEqualTo(before);
    }
  }

  @Test
  void restart_ofAllNodes_comparesEachDirectoryByOneQuestion() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.KEEP, 1, AMPLE)) {
      tree(nodes);
      for (int i = 0; i < 4; i++) {
        nodes.add();
      }
      nodes.meet();
      readEverywhere(nodes);
      AtomicInteger questions = new AtomicInteger();
      nodes.fault = (from, to) -> questions.incrementAndGet();
      nodes.store.write("d1/f03", 777, 4_000);

      nodes.restart();
      nodes.meet();
      readEverywhere(nodes);

      // For each directory of another node: its content, and twice its own attributes. For the file
      // that changed: its content.
      assertThat(questions.get()).isBetween(1, 4 * (DIRECTORIES + 1) * 3 + 4 * 3);
      assertThat(nodes.asked(SourceOperations::bytes)).isEqualTo(4_000);
      long files = DIRECTORIES * FILES;
      assertThat(nodes.asked(SourceOperations::stats))
          .as("each name once, and directories more often; each copy on another node once")
          .isBetween(files, 2 * files + 3 * files);
    }
  }

  @Test
  void read_whenAPeerIsDead_isServedByTheSourceAndThePeerIsSuspected() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.AUTO, 1, AMPLE)) {
      tree(nodes);
      TestNodes.Node reader = nodes.add();
      TestNodes.Node dead = nodes.add();
      nodes.meet();
      dead.close();

      assertThat(TestNodes.difference(nodes.expected(), reader.readAll())).isNull();

      assertThat(reader.suspects.isSuspected(dead.member)).isTrue();
      assertThat(reader.peers.statisticsOfPeers().misses()).isBetween(1L, 10L);
    }
  }

  @Test
  void read_afterTheOwnerLeft_isTheNewOwnersAndComesFromItsCopies() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.AUTO, 1, AMPLE)) {
      tree(nodes);
      TestNodes.Node first = nodes.add();
      TestNodes.Node second = nodes.add();
      TestNodes.Node leaves = nodes.add();
      nodes.meet();
      assertThat(TestNodes.difference(nodes.expected(), first.readAll())).isNull();
      assertThat(TestNodes.difference(nodes.expected(), second.readAll())).isNull();
      first.awaitIdle();
      second.awaitIdle();
      leaves.close();
      nodes.meet(first, second);
      long before = first.asked().bytes() + second.asked().bytes();

      assertThat(TestNodes.difference(nodes.expected(), first.readAll())).isNull();
      assertThat(TestNodes.difference(nodes.expected(), second.readAll())).isNull();

      assertThat(first.asked().bytes() + second.asked().bytes()).isEqualTo(before);
    }
  }

  @Test
  void read_byANodeThatJoinsLate_asksWhoOwnedTheFilesWithoutIt() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.AUTO, 1, AMPLE)) {
      long bytes = tree(nodes);
      TestNodes.Node first = nodes.add();
      TestNodes.Node second = nodes.add();
      nodes.meet(first, second);
      assertThat(TestNodes.difference(nodes.expected(), first.readAll())).isNull();
      first.awaitIdle();
      second.awaitIdle();
      TestNodes.Node late = nodes.add();
      nodes.meet();

      assertThat(TestNodes.difference(nodes.expected(), late.readAll())).isNull();

      assertThat(late.asked().bytes()).isZero();
      assertThat(nodes.asked(SourceOperations::bytes)).isEqualTo(bytes);
    }
  }

  @Test
  void read_afterOneOfTwoOwnersLeft_comesFromTheOther() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.NEVER, 2, AMPLE)) {
      tree(nodes);
      for (int i = 0; i < 4; i++) {
        nodes.add();
      }
      nodes.meet();
      readEverywhere(nodes);
      TestNodes.Node leaves = nodes.nodes.get(2);
      leaves.close();
      TestNodes.Node[] rest =
          nodes.nodes.stream().filter(node -> node != leaves).toArray(TestNodes.Node[]::new);
      nodes.meet(rest);
      long before = nodes.asked(SourceOperations::bytes);

      for (TestNodes.Node node : rest) {
        assertThat(TestNodes.difference(nodes.expected(), node.readAll())).isNull();
      }

      assertThat(nodes.asked(SourceOperations::bytes)).isEqualTo(before);
    }
  }

  /** Three nodes read the same large file one after another; returns the last one. */
  private static TestNodes.Node readLargeByThree(TestNodes nodes) throws Exception {
    nodes.store.file("large", 1, LARGE);
    for (int i = 0; i < 3; i++) {
      nodes.add();
    }
    nodes.meet();
    // As on a link: else a node is never busy, and nobody else needs to be asked.
    nodes.fault = (from, to) -> LockSupport.parkNanos(20_000_000);
    FileName path = FileName.of("large");
    TestNodes.Node owner =
        nodes.nodes.stream().filter(node -> isFirst(node, path)).findFirst().orElseThrow();
    List<TestNodes.Node> others = new ArrayList<>(nodes.nodes);
    others.remove(owner);
    byte[] expected = nodes.expected().get("large");
    for (TestNodes.Node node : List.of(owner, others.get(0), others.get(1))) {
      assertThat(node.read("large")).isEqualTo(expected);
      node.awaitIdle();
    }
    assertThat(nodes.asked(SourceOperations::bytes)).isEqualTo(LARGE);
    return others.get(1);
  }

  private static boolean isFirst(TestNodes.Node node, FileName path) {
    return node.owners.isSelf(node.owners.of(path).get(0));
  }

  @Test
  void read_ofALargeFileThatAGuestHas_comesFromBothAtOnce() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.KEEP, 1, AMPLE)) {
      TestNodes.Node last = readLargeByThree(nodes);

      assertThat(last.given).hasSize(2);
      // Who answers sooner gives more.
      assertThat(last.given.values()).allMatch(bytes -> bytes > LARGE / 8);
    }
  }

  @Test
  void read_ofALargeFileThatNoGuestKeeps_comesFromItsOwner() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.NEVER, 1, AMPLE)) {
      TestNodes.Node last = readLargeByThree(nodes);

      assertThat(last.given).hasSize(1);
    }
  }

  /** The guest has lost its copy, and is asked once. */
  @Test
  void read_ofALargeFileThatAGuestHadOnce_comesFromItsOwner() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.KEEP, 1, AMPLE)) {
      TestNodes.Node last = readLargeByThree(nodes);
      List<UUID> gave = List.copyOf(last.given.keySet());
      for (TestNodes.Node node : nodes.nodes) {
        if (!isFirst(node, FileName.of("large"))) {
          node.stager.evict(node.number("large"));
        }
      }
      last.given.clear();
      long missesBefore = last.peers.statisticsOfPeers().misses();

      assertThat(last.read("large")).isEqualTo(nodes.expected().get("large"));

      assertThat(last.given).hasSize(1);
      assertThat(gave).containsAll(last.given.keySet());
      // It says that it has no blocks, and so is asked for none.
      assertThat(last.peers.statisticsOfPeers().misses()).isEqualTo(missesBefore);
      assertThat(nodes.asked(SourceOperations::bytes)).isEqualTo(LARGE);
    }
  }

  @Test
  void read_ofALargeFileThatTwoOwn_comesFromBoth() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.NEVER, 2, AMPLE)) {
      nodes.store.file("large", 1, LARGE);
      for (int i = 0; i < 4; i++) {
        nodes.add();
      }
      nodes.meet();
      byte[] expected = nodes.expected().get("large");
      for (int round = 0; round < 2; round++) {
        for (TestNodes.Node node : nodes.nodes) {
          node.given.clear();
          assertThat(node.read("large")).isEqualTo(expected);
          node.awaitIdle();
        }
      }
      for (TestNodes.Node node : nodes.nodes) {
        if (!node.owners.isOwn(FileName.of("large"))) {
          // A node that had nothing in the first round is asked again after a pause.
          Await.until(
              "both give a third",
              () -> {
                node.given.clear();
                assertThat(node.read("large")).isEqualTo(expected);
                return node.given.size() == 2
                    && node.given.values().stream().allMatch(bytes -> bytes > LARGE / 3);
              });
        }
      }
    }
  }

  @Test
  void stage_onEachNode_copiesItsOwnFilesOnly() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.AUTO, 1, AMPLE)) {
      long bytes = tree(nodes);
      for (int i = 0; i < 3; i++) {
        nodes.add();
      }
      nodes.meet();
      long files = 0;
      for (TestNodes.Node node : nodes.nodes) {
        FileTask task = node.tasks.start(stage(false));
        assertThat(task.await(Duration.ofSeconds(30))).isTrue();
        files += task.progress().done();
      }
      assertThat(files).isEqualTo(nodes.expected().size());
      assertThat(nodes.asked(SourceOperations::bytes)).isEqualTo(bytes);

      TestNodes.Node node = nodes.nodes.get(0);
      FileTask task = node.tasks.start(stage(true));
      assertThat(task.await(Duration.ofSeconds(30))).isTrue();

      assertThat(task.progress().done() + task.progress().present())
          .isEqualTo(nodes.expected().size());
      for (String path : nodes.expected().keySet()) {
        assertThat(node.hasCopy(path)).as(path).isTrue();
      }
      assertThat(nodes.asked(SourceOperations::bytes)).isEqualTo(bytes);
    }
  }

  private static TaskRequest.Stage stage(boolean replicated) {
    return new TaskRequest.Stage(
        TaskPaths.of(List.of(FileName.of(""))),
        new TaskRequest.Limits(4, 0, 0),
        null,
        false,
        false,
        replicated);
  }

  @Test
  void open_ofAnOwnFileInAnothersDirectory_needsNoVersion() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.AUTO, 1, AMPLE)) {
      tree(nodes);
      TestNodes.Node node = nodes.add();
      nodes.add();
      nodes.meet();
      FileName path =
          nodes.expected().keySet().stream()
              .map(FileName::of)
              .filter(file -> node.owners.isOwn(file))
              .filter(file -> !node.owners.isOwn(Paths.parent(file)))
              .findFirst()
              .orElseThrow();

      PeerService.Content content = node.service.open(path, null, false, null);

      assertThat(content.status()).isEqualTo(nodes.store.expectedStatus(path));
      int size = Math.toIntExact(content.status().attributes().size());
      CollectingSink sink = new CollectingSink();
      content.copyTo(0, size, sink);
      assertThat(sink.answer()).isEqualTo(nodes.store.expected(path, 0, size));
    }
  }

  @Test
  void read_whenThePeerHasAnotherVersion_isTheSources() throws Exception {
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.AUTO, 1, AMPLE)) {
      tree(nodes);
      TestNodes.Node old = nodes.add();
      assertThat(TestNodes.difference(nodes.expected(), old.readAll())).isNull();
      nodes.store.write("d1/f01", 4711, 9_000);
      TestNodes.Node fresh = nodes.add();
      // Names are imported before the others are known, contents after.
      fresh.number("d1/f01");
      nodes.meet();

      assertThat(fresh.read("d1/f01")).isEqualTo(nodes.expected().get("d1/f01"));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void read_whilePeersFailAndViewsChange_isAlwaysTheSourcesBytes(int replicas) throws Exception {
    long seed = System.nanoTime();
    Random random = new Random(seed);
    AtomicInteger asked = new AtomicInteger();
    try (TestNodes nodes = new TestNodes(directory, RemoteCopies.AUTO, replicas, 6 << 20)) {
      tree(nodes);
      for (int i = 0; i < 4; i++) {
        nodes.add();
      }
      nodes.meet();
      nodes.fault =
          (from, to) -> {
            int question = asked.incrementAndGet();
            if (question % 7 == 3) {
              PeerException.Kind[] kinds = PeerException.Kind.values();
              throw new PeerException(kinds[question / 7 % kinds.length], "as the test wants it");
            }
          };
      for (int round = 0; round < 6; round++) {
        List<TestNodes.Node> some = new ArrayList<>(nodes.nodes);
        Collections.shuffle(some, random);
        List<TestNodes.Node> met = some.subList(0, 1 + random.nextInt(4));
        nodes.meet(met.toArray(TestNodes.Node[]::new));
        readEverywhere(nodes);
      }
    } catch (AssertionError e) {
      throw new AssertionError("with seed " + seed, e);
    }
  }
}
