package io.pmfs.it;

import static io.pmfs.it.NodeCacheBed.ADA;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Errors are thrown in threads of a daemon that have to live, each kind at several calls: each of
 * them goes on, and the daemon is the same one at the end.
 */
final class ThrownErrorsIT {
  private static final List<String> KINDS = List.of("thread", "direct", "stack", "class");
  private static final Duration SOON = Duration.ofSeconds(30);
  private static final Duration LIFETIME = Duration.ofMinutes(8);
  private static final int FILES = 40;
  private static final int PARTS = 100;

  @Installed(byRoot = true)
  private Installation pmfs;

  private final Random random = new Random(5);
  private Path process;
  private String options;
  private int round;

  @BeforeEach
  void makeSwitch() {
    process = pmfs.directory("switch");
    options = "-XX:TieredStopAtLevel=1 " + ErrorAgent.option(process);
    pmfs.environment("PMFS_JAVA_OPTIONS", options);
  }

  private static boolean lives(MountedPmfs mount, String thread) {
    return Pattern.compile("\"" + Pattern.quote(thread)).matcher(mount.threads()).find();
  }

  /** Throws each kind of Error in a thread; says where. */
  private void throwIn(MountedPmfs mount, String thread, int mostCalls, Runnable meanwhile)
      throws IOException {
    long daemon = mount.daemon();
    assertThat(lives(mount, thread)).as(thread + " lives").isTrue();
    for (String kind : KINDS) {
      String where =
          ErrorSwitch.throwIn(process, thread, random.nextInt(mostCalls), kind, meanwhile);
      assertThat(where).as("%s comes to an error", thread).isNotEmpty();
      Await.until(thread + " lives after\n" + where, SOON, () -> lives(mount, thread));
      assertThat(mount.daemon()).as("the daemon after\n" + where).isEqualTo(daemon);
    }
  }

  private static void awaitNoTrouble(MountedPmfs mount) {
    Await.until(
        "no trouble any more",
        Duration.ofSeconds(60),
        () -> mount.status().text("threadFailure").isEmpty());
  }

  @Test
  @OnRequest(value = "modes", what = "the same, read-only")
  void threads_ofAMount_goOnAfterErrors() throws Exception {
    Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(FILES, 5000));
    try (MountedPmfs mount =
        pmfs.mount(
            LIFETIME,
            dataset.root(),
            "--metrics",
            "127.0.0.1:0",
            "--access-log",
            pmfs.directory("logs") + "/access.log")) {
      Runnable reading = () -> dataset.assertEqualBelow(mount.mountpoint());
      throwIn(mount, "requests", 200, reading);
      assertThat(mount.status().text("threadFailure")).startsWith("thread requests: ");
      throwIn(mount, "heartbeat", 8, ErrorSwitch::pause);
      assertThat(mount.status().text("threadFailure")).contains("thread ");
      throwIn(mount, "state", 1, ErrorSwitch::pause);
      throwIn(mount, "recent-reads", 3, reading);
      throwIn(mount, "metrics-history", 20, ErrorSwitch::pause);
      reading.run();
      mount.awaitCopies(FILES);
      awaitNoTrouble(mount);
    }
  }

  @Test
  @OnRequest("cases")
  void threads_ofAWritableMount_goOnAfterErrors() throws Exception {
    Path source = pmfs.directory("source");
    try (MountedPmfs mount = pmfs.mount(LIFETIME, source, "--writable")) {
      Runnable writing = () -> write(mount.mountpoint());
      throwIn(mount, "pmfs-outputs", 30, writing);
      throwIn(mount, "pmfs-copier", 60, writing);
      for (int most = 50; most < 1000; most += Requested.is("modes") ? 100 : 400) {
        throwIn(mount, "pmfs-committer", most, writing);
        // The pauses between attempts begin anew with what succeeds.
        Await.until("drained", SOON, () -> mount.status().number("outputs.waitingChanges") == 0);
      }
      pmfs.run("drain", mount.mountpoint().toString()).expect(0);
      assertArrived(source);
      awaitNoTrouble(mount);
      assertThat(mount.status().number("outputs.waitingChanges")).isZero();
      assertThat(mount.status().number("outputs.conflicts")).isZero();
    }
  }

  /** What a thread had taken for a user's request is given back: all files have copies at last. */
  @Test
  @OnRequest("modes")
  void threads_ofANodeCacheAndItsMounts_goOnAfterErrors() throws Exception {
    try (NodeCacheBed bed = new NodeCacheBed()) {
      Path service = bed.makeErrorSwitch(NodeCacheBed.SERVICE);
      Path user = bed.makeErrorSwitch(ADA);
      bed.serve();
      Dataset dataset = bed.dataset("source", ADA, Dataset.sizes(PARTS * 10, 3000));
      Path mountpoint = bed.mount(ADA, "a", dataset);
      Runnable using =
          () -> {
            String part = "part-%03d".formatted(round++ % PARTS);
            assertReadRight(bed, dataset.root().resolve(part), mountpoint.resolve(part));
            bed.hasAnswer(); // not while the thread that failed pauses
          };
      for (String thread : List.of("accept", "user-" + ADA, "patience", "copy-")) {
        for (String kind : KINDS) {
          int calls = random.nextInt(thread.equals("accept") ? 8 : 40);
          String where = ErrorSwitch.throwIn(service, thread, calls, kind, using);
          assertThat(where).as("%s comes to an error", thread).isNotEmpty();
          Await.until("answers after\n" + where, SOON, bed::hasAnswer);
        }
      }
      for (String kind : KINDS) {
        String where = ErrorSwitch.throwIn(user, "cache", random.nextInt(20), kind, using);
        assertThat(where).as("the mount's thread comes to an error").isNotEmpty();
      }
      assertThat(bed.isServing()).isTrue();
      Await.until("all files have copies", Duration.ofMinutes(2), () -> hasAllCopies(bed, dataset));
      bed.by(ADA, bed.launcher().toString(), "umount", mountpoint.toString()).expect(0);
      Await.until("no copy is open", SOON, () -> bed.report().number("room.leftOpen") == 0);
      Status left = bed.report();
      assertThat(left.number("copying")).isZero();
      assertThat(left.number("waiting")).isZero();
      assertThat(left.number("room.usedFiles")).isEqualTo(left.number("room.copies"));
      assertThat(left.number("room.users." + ADA + ".openBytes")).isZero();
    }
  }

  private static void assertReadRight(NodeCacheBed bed, Path source, Path shown) {
    bed.by(ADA, "diff", "-r", source.toString(), shown.toString()).expect(0);
  }

  private static boolean hasAllCopies(NodeCacheBed bed, Dataset dataset) {
    Path again = bed.mount(ADA, "again", dataset);
    assertReadRight(bed, dataset.root(), again);
    long bytes = bed.status(ADA, again).number("sourceOperations.bytes");
    bed.by(ADA, bed.launcher().toString(), "umount", again.toString()).expect(0);
    return bytes == 0;
  }

  @Test
  @OnRequest("cluster")
  void threads_ofANodeOfACluster_goOnAfterErrors() throws Exception {
    Nodes.require();
    try (ClusterBed bed = new ClusterBed(2, Dataset.sizes(PARTS * 10, 3000))) {
      Node node = bed.node(1);
      node.pmfs().environment("PMFS_JAVA_OPTIONS", options);
      bed.mountAll("--remote-copies", "never");
      Runnable reading =
          () -> {
            String part = "part-%03d".formatted(round++ % PARTS);
            bed.onAll(one -> assertSame(one, bed.dataset().root(), part));
          };
      MountedPmfs mount = node.mounted();
      throwIn(mount, "pmfs-attendance", 6, reading);
      throwIn(mount, "members", 10, reading);
      throwIn(mount, "pmfs-peer-server", 20, reading);
      throwIn(mount, "pmfs-peer-client", 20, reading);
      throwIn(mount, "pmfs-peer-", 60, reading);
      Runnable leaving =
          () -> {
            bed.node(0).unmount();
            bed.mount(bed.node(0), "--remote-copies", "never");
          };
      throwIn(mount, "pmfs-lonely-copies", 3, leaving);
      bed.awaitMembers(2);
      bed.epoch();
      bed.awaitStagingIdle();
      awaitNoTrouble(mount);
    }
  }

  /** Of the node that asks the owner, and of the owner's view of the nodes. */
  @Test
  @OnRequest("cluster")
  void threads_ofNodesThatWrite_goOnAfterErrors() throws Exception {
    Nodes.require();
    try (Nodes nodes = new Nodes(2)) {
      Path source = pmfs.directory("source");
      Path secret = pmfs.scratch().root().resolve("secret");
      ClusterBed.writeSecret(secret, "a secret of these nodes, and of no others", "rw-------");
      Node owner = nodes.all().get(0);
      Node other = nodes.all().get(1);
      for (Node node : nodes.all()) {
        Path wishes = pmfs.directory("switch-of-" + node.address());
        node.pmfs()
            .environment(
                "PMFS_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 " + ErrorAgent.option(wishes));
      }
      nodes.mount(
          source,
          node ->
              List.of(
                  "--writable",
                  "--cluster",
                  "outputs",
                  "--nodes",
                  owner.address() + "," + other.address(),
                  "--cluster-secret-file",
                  secret.toString()));
      Runnable writing = () -> write(other.mounted().mountpoint());
      process = pmfs.directory("switch-of-" + other.address());
      throwIn(other.mounted(), "pmfs-owner", 40, writing);
      throwIn(other.mounted(), "pmfs-outputs-members", 4, writing);
      process = pmfs.directory("switch-of-" + owner.address());
      throwIn(owner.mounted(), "pmfs-outputs-members", 4, writing);
      for (Node node : nodes.all()) {
        node.pmfs().run("drain", node.mounted().mountpoint().toString()).expect(0);
        awaitNoTrouble(node.mounted());
        assertThat(node.mounted().status().number("outputs.waitingChanges")).isZero();
      }
      assertArrived(source);
    }
  }

  private static void assertSame(Node node, Path source, String part) {
    Path shown = node.mounted().mountpoint().resolve(part);
    Command.run("diff", "-r", source.resolve(part).toString(), shown.toString()).expect(0);
  }

  /** The heap runs out in a reader's thread, and so for all: that daemon ends. */
  @Test
  void heap_thatRunsOut_costsADaemonAndNoReaderAByte() throws Exception {
    Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(FILES, 200_000));
    try (MountedPmfs mount = pmfs.mount(LIFETIME, dataset.root());
        Readers readers =
            new Readers(dataset, mount.mountpoint(), 4, dataset.items().subList(0, 2))) {
      for (String thread : List.of("fuse-", "heartbeat")) {
        long daemon = mount.daemon();
        String where =
            ErrorSwitch.throwIn(process, thread, 20, ErrorSwitch.FILLED_HEAP, ErrorSwitch::pause);
        assertThat(where).isNotEmpty();
        mount.awaitSuccessor(daemon);
        readers.awaitMore(100);
        readers.assertNoFailures();
      }
      assertThat(mount.status().number("reads.errors")).isZero();
      assertThat(mount.status().text("logFile"))
          .satisfies(
              log ->
                  assertThat(Files.readString(Path.of(log)))
                      .containsSubsequence(
                          "OutOfMemoryError: Java heap space", "starting another"));
    }
  }

  private void assertArrived(Path source) {
    for (int i = 0; i < round; i++) {
      assertThat(source.resolve("d" + i + "/new")).hasContent("text " + i + "\nmore\n");
      assertThat(source.resolve("d" + i + "/old")).doesNotExist();
    }
  }

  private void write(Path mountpoint) {
    try {
      Path directory = Files.createDirectory(mountpoint.resolve("d" + round));
      Path file = directory.resolve("old");
      Files.writeString(file, "text " + round + "\n");
      Files.move(file, directory.resolve("new"));
      Files.writeString(directory.resolve("new"), "more\n", StandardOpenOption.APPEND);
      round++;
      ErrorSwitch.pause();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
