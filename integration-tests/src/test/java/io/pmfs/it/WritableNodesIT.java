package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Writable mounts of one directory on several nodes: docs/semantics.md, section 13. */
final class WritableNodesIT {
  private static final Duration SOON = Duration.ofSeconds(60);

  /** How many directories a program makes while daemons die, at least. */
  private static final int LEAST = 12;

  private static final int ROUNDS = Requested.count("cluster", 20, 6);

  private Nodes nodes;
  private final Scratch scratch = new Scratch();
  private Path source;
  private Path secret;

  @BeforeEach
  void make() throws IOException {
    Nodes.require();
    Machine.requireFuse();
    nodes = new Nodes(2);
    source = scratch.directory("source");
    Files.writeString(source.resolve("old"), "as it was\n");
    secret = scratch.root().resolve("secret");
    ClusterBed.writeSecret(secret, "a secret of these nodes, and of no others", "rw-------");
  }

  @AfterEach
  void remove() {
    if (nodes != null) {
      nodes.close();
    }
    scratch.close();
  }

  private Node owner() {
    return nodes.all().get(0);
  }

  private Node other() {
    return nodes.all().get(1);
  }

  private String[] options(String... more) {
    String addresses = owner().address() + "," + other().address();
    List<String> options =
        new ArrayList<>(
            List.of(
                "--writable",
                "--allow-other",
                "--cluster",
                "outputs",
                "--nodes",
                addresses,
                "--cluster-secret-file",
                secret.toString()));
    options.addAll(List.of(more));
    return options.toArray(String[]::new);
  }

  private void mountBoth(String... more) {
    CompletableFuture<?> first =
        CompletableFuture.runAsync(() -> owner().mount(source, options(more)));
    other().mount(source, options(more));
    first.join();
  }

  private static Path at(Node node, String path) {
    return node.mounted().mountpoint().resolve(path);
  }

  private static Command shell(Node node, String script) {
    return Command.run(
        "sh", "-euc", "cd -- \"$1\"; " + script, "-", node.mounted().mountpoint().toString());
  }

  private static void drain(Node node) {
    node.pmfs().run("drain", node.mounted().mountpoint().toString()).expect(0);
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String tree(Path root) {
    return Command.run(
            "sh",
            "-euc",
            "cd -- \"$1\"; find . -mindepth 1 -printf '%P %y %m %U:%G %l %s\\n' | sort;"
                + " find . -type f -print0 | sort -z | xargs -0 -r sha256sum",
            "-",
            root.toString())
        .expect(0)
        .out();
  }

  @Test
  void changes_ofOneNode_areSeenByTheOtherAndReachTheSource() {
    mountBoth();
    assertThat(read(at(other(), "old"))).isEqualTo("as it was\n");
    for (int i = 0; i < ROUNDS; i++) {
      Node writer = nodes.all().get(i % 2);
      Node reader = nodes.all().get((i + 1) % 2);
      shell(writer, "mkdir d%d; echo text %d >d%d/f; echo %d >>log".formatted(i, i, i, i))
          .expect(0);
      assertThat(read(at(reader, "d" + i + "/f"))).isEqualTo("text " + i + "\n");
      assertThat(read(at(reader, "log"))).endsWith(i + "\n").hasLineCount(i + 1);
      shell(writer, "mv d%d/f d%d/g; ln -s g d%d/l; chmod 600 d%d/g".formatted(i, i, i, i))
          .expect(0);
      assertThat(at(reader, "d" + i + "/f")).doesNotExist();
      assertThat(read(at(reader, "d" + i + "/l"))).isEqualTo("text " + i + "\n");
      shell(reader, "rm d%d/l; test -f d%d/g".formatted(i, i)).expect(0);
      assertThat(at(writer, "d" + i + "/l")).doesNotExist();
    }
    shell(other(), "dd if=/dev/urandom of=large bs=1M count=30 conv=fsync status=none").expect(0);
    assertThat(tree(owner().mounted().mountpoint()))
        .isEqualTo(tree(other().mounted().mountpoint()));
    drain(other());
    assertThat(tree(source)).isEqualTo(tree(other().mounted().mountpoint()));
    String mountpoint = other().mounted().mountpoint().toString();
    assertThat(other().pmfs().run("status", mountpoint).expect(0).out())
        .containsPattern(owner().address() + ":\\d+, owns all names\n")
        .containsPattern(other().address() + ":\\d+, this node\n");
    for (Node node : nodes.all()) {
      assertThat(status(node, "--all-nodes").expect(0).out())
          .containsPattern(owner().address() + " +owner +0 +0 B +0 ")
          .containsPattern(other().address() + " +writer ")
          .contains("the owner of all names is " + owner().address())
          .doesNotContain("missing", "away");
    }
  }

  private static Command status(Node node, String... options) {
    List<String> line = new ArrayList<>(List.of("status"));
    line.addAll(List.of(options));
    line.add(node.mounted().mountpoint().toString());
    return node.pmfs().run(line.toArray(String[]::new));
  }

  private static void awaitMissing(Node node) {
    Await.until("it is missed", SOON, () -> node.mounted().status().size("cluster.missing") == 1);
  }

  @Test
  @OnRequest("cases")
  void file_thatAnotherNodeHasOpenForWriting_isBusy() {
    mountBoth();
    for (Node first : nodes.all()) {
      Node second = first == owner() ? other() : owner();
      Path file = at(first, "log");
      Process holder =
          first.start(
              ProcessBuilder.Redirect.DISCARD,
              "sh",
              "-c",
              "exec 3>>\"$1\"; echo x >&3; exec sleep 100",
              "-",
              file.toString());
      Await.until("written", SOON, () -> file.toFile().length() > 0);
      Command refused = shell(second, "echo y >>log");
      assertThat(refused.exit()).isNotZero();
      assertThat(refused.err()).contains("busy");
      shell(second, "cat log").expect(0);
      holder.destroyForcibly();
      shell(second, "echo y >>log").expect(0);
      shell(first, "grep -q y log; rm log").expect(0);
    }
  }

  /** Each line is written, closed and expected by the other node, whatever dies. */
  @Test
  @OnRequest("cluster")
  void daemons_thatAreKilledInTurn_loseNothingAndRepeatNothing() throws Exception {
    mountBoth();
    AtomicBoolean ends = new AtomicBoolean();
    List<CompletableFuture<Integer>> writers = new ArrayList<>();
    for (Node node : nodes.all()) {
      String own = node == owner() ? "o" : "n";
      writers.add(
          CompletableFuture.supplyAsync(
              () -> {
                int count = 0;
                while (!ends.get() || count < LEAST) {
                  shell(
                          node,
                          "mkdir %s%d; echo %d >%s%d/new; mv %s%d/new %s%d/file; echo %d >>%slog"
                              .formatted(
                                  own, count, count, own, count, own, count, own, count, count,
                                  own))
                      .expect(0);
                  count++;
                }
                return count;
              }));
    }
    for (int round = 0; round < 4; round++) {
      Thread.sleep(1500);
      nodes.all().get(round % 2).mounted().killDaemon();
    }
    Thread.sleep(3000);
    ends.set(true);
    List<Integer> counts = List.of(writers.get(0).get(), writers.get(1).get());
    drain(owner());
    for (Node node : nodes.all()) {
      String own = node == owner() ? "o" : "n";
      int count = counts.get(node == owner() ? 0 : 1);
      assertThat(count).isGreaterThanOrEqualTo(LEAST);
      StringBuilder log = new StringBuilder();
      for (int i = 0; i < count; i++) {
        log.append(i).append('\n');
        assertThat(read(source.resolve(own + i + "/file"))).isEqualTo(i + "\n");
      }
      assertThat(read(source.resolve(own + "log"))).isEqualTo(log.toString());
    }
    assertThat(tree(source)).isEqualTo(tree(other().mounted().mountpoint()));
  }

  /** The sizes of the files in which a node keeps what was written. */
  private static List<Long> kept(Node node) {
    return node.pmfs().copies().stream()
        .filter(file -> file.toString().contains("/of-"))
        .map(file -> file.toFile().length())
        .toList();
  }

  private static void writeLarge(Node node, String name) {
    shell(node, "dd if=/dev/urandom of=%s bs=1M count=8 conv=fsync status=none".formatted(name))
        .expect(0);
  }

  private static String sum(Node node, String name) {
    return shell(node, "sha256sum " + name).expect(0).out();
  }

  @Test
  @OnRequest("cases")
  void content_ofANode_staysThereUntilTheSourceHasIt() {
    mountBoth("--drain-rate", "1M");
    writeLarge(other(), "first");
    writeLarge(other(), "second");
    shell(other(), "echo small >third").expect(0);
    assertThat(kept(other())).contains(8L << 20);
    assertThat(owner().pmfs().copies()).noneMatch(file -> file.toFile().length() >= 8L << 20);
    String second = sum(other(), "second");
    assertThat(sum(owner(), "second")).isEqualTo(second);
    other().mounted().killDaemon();
    assertThat(sum(owner(), "second")).isEqualTo(second);
    assertThat(sum(other(), "second")).isEqualTo(second);
    drain(owner());
    assertThat(tree(source)).isEqualTo(tree(other().mounted().mountpoint()));
    assertThat(sum(owner(), "second")).isEqualTo(second);
    Await.until("removed", SOON, () -> kept(other()).isEmpty());
  }

  @Test
  @OnRequest("cluster")
  void content_thatOnlyTheSourceHas_isReadThereByEachNode() {
    mountBoth();
    writeLarge(other(), "large");
    String sum = sum(owner(), "large"); // So the other node's kernel has no pages of it.
    drain(owner());
    Await.until("removed", SOON, () -> kept(other()).isEmpty());
    long before = receivedBytes(other());
    assertThat(sum(other(), "large")).isEqualTo(sum);
    assertThat(receivedBytes(other()) - before).isLessThan(4L << 20);
  }

  private static long receivedBytes(Node node) {
    String count = "/:/ { sub(/.*:/, \"\"); sum += $1 } END { print sum }";
    return Long.parseLong(node.run("awk", count, "/proc/net/dev").expect(0).out().strip());
  }

  @Test
  @OnRequest("cluster")
  void content_ofANodeThatIsAway_waitsForIt() {
    mountBoth("--drain-rate", "1M");
    writeLarge(other(), "large");
    String sum = sum(other(), "large");
    other().cut();
    shell(owner(), "echo later >later").expect(0);
    Command left = owner().pmfs().run("drain", owner().mounted().mountpoint().toString()).expect(4);
    assertThat(left.out() + left.err()).contains("large");
    assertThat(left.err())
        .contains(
            "("
                + other().address()
                + "), which has the data written there, has been unreachable since ")
        .contains(": large waits for it; mount there again")
        .doesNotContain("refused");
    awaitMissing(owner());
    for (String form : List.of("--all-nodes", "--json")) {
      assertThat(status(owner(), form).expect(4).err())
          .contains("large waits for it", "1 of 2 expected nodes, missing: " + other().address())
          .doesNotContain("refused");
    }
    assertThat(owner().mounted().status().number("outputs.refused")).isZero();
    assertThat(shell(owner(), "cat large").exit()).isNotZero();
    // It depends on nothing that the other node has.
    assertThat(read(source.resolve("later"))).isEqualTo("later\n");
    other().mend();
    Await.until("reached", SOON, () -> shell(owner(), "cat large").exit() == 0);
    drain(owner());
    assertThat(sum(owner(), "large")).isEqualTo(sum);
    assertThat(read(source.resolve("later"))).isEqualTo("later\n");
    assertThat(tree(source)).isEqualTo(tree(other().mounted().mountpoint()));
  }

  @Test
  @OnRequest("cluster")
  void node_thatIsCutOff_failsToChangeAndLosesItsTurn() throws Exception {
    mountBoth();
    Path file = at(other(), "log");
    Process holder =
        other()
            .start(
                ProcessBuilder.Redirect.DISCARD,
                "sh",
                "-c",
                "exec 3>>\"$1\"; echo x >&3; exec sleep 300",
                "-",
                file.toString());
    // A small file that stays open goes to the owner after a while.
    Await.until("arrived", SOON, () -> Files.exists(source.resolve("log")));
    assertThat(read(at(other(), "old"))).isEqualTo("as it was\n");
    Path opened = scratch.root().resolve("opened");
    Path goesOn = scratch.root().resolve("goes-on");
    Path seen = scratch.root().resolve("seen");
    Process reader =
        other()
            .start(
                ProcessBuilder.Redirect.DISCARD,
                "sh",
                "-euc",
                "exec 3<\"$1\"; : >\"$2\"; until test -e \"$3\"; do sleep 0.2; done;"
                    + " IFS= read -r line <&3; echo \"$line\" >\"$4\"",
                "-",
                at(other(), "old").toString(),
                opened.toString(),
                goesOn.toString(),
                seen.toString());
    Await.until("opened", SOON, () -> Files.exists(opened));
    other().cut();
    Command refused = shell(other(), "mkdir none");
    assertThat(refused.exit()).isNotZero();
    assertThat(refused.err()).contains("Input/output error");
    assertThat(shell(other(), "cat old").err()).contains("Input/output error");
    // What a program had open before, it reads on.
    Files.createFile(goesOn);
    Await.until("read", SOON, () -> seen.toFile().length() > 0);
    assertThat(read(seen)).isEqualTo("as it was\n");
    assertThat(reader.waitFor()).isZero();
    assertThat(status(other()).expect(4).out())
        .contains(owner().address() + ", which owns all names, has been unreachable since ")
        .contains("so it is unknown what is not at the source yet", "was waiting")
        .doesNotContain("all is at the source", "refused");
    awaitMissing(other());
    assertThat(status(other(), "--all-nodes").expect(4).out())
        .contains("1 of 2 expected nodes, missing: " + owner().address())
        .contains(owner().address() + ", which owns all names, has been unreachable since ");
    // Of the node that is cut off, the owner knows only what it was told.
    awaitMissing(owner());
    assertThat(status(owner()).expect(4).out())
        .contains("all known changes are at the source; those of missing nodes are unknown");
    String place = owner().mounted().mountpoint().toString();
    assertThat(owner().pmfs().run("drain", place).expect(4).err())
        .contains("unknown are those of " + other().address() + ", missing since ");
    assertThat(owner().pmfs().run("doctor", place).expect(4).out()).contains("is not healthy");
    Command[] last = new Command[1];
    Await.until(
        () -> "free, and not: " + last[0].err(),
        Duration.ofSeconds(90),
        () -> {
          last[0] = shell(owner(), "echo y >>log");
          return last[0].exit() == 0;
        });
    other().mend();
    Await.until("reached", SOON, () -> shell(other(), "mkdir some").exit() == 0);
    assertThat(read(file)).isEqualTo("x\ny\n");
    holder.destroyForcibly();
    drain(other());
    assertThat(source.resolve("some")).isDirectory();
    assertThat(source.resolve("none")).doesNotExist();
    for (Node node : nodes.all()) {
      Await.until("they have met", SOON, () -> status(node).exit() == 0);
      assertThat(status(node).out()).contains("all is at the source");
    }
    other().mounted().close();
    assertThat(status(owner(), "--all-nodes").expect(0).out()).doesNotContain("missing");
    drain(owner());
  }

  /** Names are asked of the owner, content that only the source has is read by the node itself. */
  @Test
  void program_whoseSourceHangs_endsWithASignal() throws Exception {
    Files.createDirectory(source.resolve("unseen"));
    try (NodeView view = new NodeView(source)) {
      mountBoth();
      shell(other(), "ls -l").expect(0);
      view.stop();
      try {
        for (String program : new String[] {"ls unseen", "cat old"}) {
          long begin = System.nanoTime();
          assertThat(shell(other(), "timeout -k 20 -s INT 3 " + program).exit()).isEqualTo(124);
          assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(SOON.dividedBy(4));
        }
      } finally {
        view.go();
      }
      shell(other(), "ls unseen; grep was old").expect(0);
      other().unmount();
      owner().unmount();
    }
  }

  @Test
  @OnRequest("cases")
  void mount_withoutTheOwner_saysWhereToMountFirst() {
    Installation pmfs = other().pmfs();
    Command refused =
        pmfs.run(pmfs.mountArguments(source, pmfs.mountpoint(), options("--ready-timeout", "3s")));
    assertThat(refused.exit()).isEqualTo(1);
    assertThat(refused.err())
        .contains(owner().address() + ", which owns this mount's names, does not answer")
        .contains("waited 3s (--ready-timeout) and found no other node")
        .contains("mount on " + owner().address() + " first or at the same time, or wait longer");
  }

  /** More than it takes to find that the group has no owner yet, and than an operation waits. */
  @Test
  @OnRequest("cluster")
  void mount_ownerComesLate_isWaitedForAsLongAsReadyTimeoutSays() {
    CompletableFuture<?> mounting =
        CompletableFuture.runAsync(
            () -> other().mount(source, options("--ready-timeout", "150s")),
            task -> new Thread(task, "mount").start());
    assertThatThrownBy(() -> mounting.get(30, TimeUnit.SECONDS))
        .as("still waits")
        .isInstanceOf(TimeoutException.class);
    owner().mount(source, options());
    mounting.join();
    assertThat(read(at(other(), "old"))).isEqualTo("as it was\n");
  }
}
