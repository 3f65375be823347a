package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Each node says which others are missing, in every form, and ends with 4 while one is. */
@OnRequest("cluster")
final class MissingNodesIT {
  private static final Duration SOON = Duration.ofSeconds(60);

  private ClusterBed bed;

  @BeforeEach
  void make() {
    Nodes.require();
    Machine.requireFuse();
    bed = new ClusterBed(4, Dataset.sizes(8, 10_000));
  }

  @AfterEach
  void remove() {
    if (bed != null) {
      bed.close();
    }
  }

  private static Command ask(Node node, String... line) {
    return node.pmfs().run(line);
  }

  private static String mountpoint(Node node) {
    return node.mounted().mountpoint().toString();
  }

  private static void awaitMissing(Node node, int count) {
    awaitMissing(node, count, List.of());
  }

  /** If it fails, it says what is in these logs. */
  private static void awaitMissing(Node node, int count, List<String> logs) {
    Await.until(
        () -> count + " missing for " + node + ": " + node.mounted().status() + ends(logs),
        SOON,
        () -> node.mounted().status().size("cluster.missing") == count);
  }

  private static String log(Node node) {
    return node.mounted().status().text("logFile");
  }

  private static String ends(List<String> logs) {
    return logs.stream()
        .map(log -> "\n" + log + ":\n" + Command.run("tail", "-n", "30", log).out())
        .collect(Collectors.joining());
  }

  /** All forms in which a node says that others are missing. */
  private void assertMisses(Node node, int here, int expected, Node... missing) {
    awaitMissing(node, missing.length);
    String words = here + " of " + expected + " expected nodes, missing: ";
    String place = mountpoint(node);
    Command table = ask(node, "status", "--all-nodes", place).expect(4);
    Command json = ask(node, "status", "--all-nodes", "--json", place).expect(4);
    Command own = ask(node, "status", place).expect(4);
    Command ownJson = ask(node, "status", "--json", place).expect(4);
    Command all = ask(node, "status").expect(4);
    Command doctor = ask(node, "doctor", place).expect(4);
    for (Command each : List.of(table, own, all, doctor)) {
      assertThat(each.out()).contains(words);
    }
    for (Command each : List.of(table, json, own, ownJson, all)) {
      assertThat(each.err()).contains(place + ": " + words);
    }
    for (Node one : missing) {
      for (Command each : List.of(table, own, doctor)) {
        assertThat(each.out()).contains(one.address() + " since 20");
      }
    }
    assertThat(doctor.out()).contains("is not healthy").doesNotContain("is healthy");
    Status report = Status.parse(json.out());
    assertThat(report.number("expected")).isEqualTo(expected);
    assertThat(report.size("missing")).isEqualTo(missing.length);
    assertThat(Status.parse(ownJson.out()).number("cluster.expected")).isEqualTo(expected);
    assertThat(metrics(node))
        .contains("pmfs_cluster_missing_members{")
        .containsPattern("pmfs_cluster_missing_members\\{[^}]*} " + missing.length + "(\\.0)?\n")
        .containsPattern("pmfs_cluster_expected_members\\{[^}]*} " + expected + "(\\.0)?\n");
  }

  private static String metrics(Node node) {
    return Command.run(
            "curl",
            "-sSf",
            "--unix-socket",
            node.pmfs().controlSocket(node.mounted().mountpoint()).toString(),
            "http://pmfs/metrics")
        .expect(0)
        .out();
  }

  private void assertMissesNobody(Node node, int nodes) {
    ClusterBed.awaitMembers(node, nodes);
    awaitMissing(node, 0);
    // The view may still have the former daemon of a node, which does not answer.
    Await.until(
        node + " gets an answer from all nodes",
        SOON,
        () -> ask(node, "status", "--all-nodes", mountpoint(node)).exit() == 0);
    assertThat(ask(node, "status", "--all-nodes", mountpoint(node)).expect(0).out())
        .doesNotContain("missing");
    assertThat(ask(node, "status", mountpoint(node)).expect(0).out()).doesNotContain("missing");
    assertThat(ask(node, "doctor", mountpoint(node)).expect(0).out()).contains("is healthy");
  }

  @Test
  void nodesThatAreCutOff_areMissedByTheOthersAndMissThem() {
    bed.mountAll();
    bed.epoch();
    bed.nodes().forEach(node -> assertMissesNobody(node, 4));
    Node cut = bed.node(3);
    cut.cut();
    assertMisses(bed.node(0), 3, 4, cut);
    assertMisses(cut, 1, 4, bed.node(0), bed.node(1), bed.node(2));
    cut.mend();
    assertMissesNobody(bed.node(0), 4);
    assertMissesNobody(cut, 4);

    bed.network().split(bed.nodes().subList(0, 2));
    assertMisses(bed.node(0), 2, 4, bed.node(2), bed.node(3));
    assertMisses(bed.node(3), 2, 4, bed.node(0), bed.node(1));
    // What is unmounted in the other half meanwhile is not missed after the halves have met.
    bed.node(3).mounted().close();
    ClusterBed.awaitMembers(bed.node(2), 1);
    assertMisses(bed.node(2), 1, 3, bed.node(0), bed.node(1));
    bed.network().heal();
    for (Node node : bed.nodes().subList(0, 3)) {
      assertMissesNobody(node, 3);
    }
  }

  @Test
  void node_thatDies_isMissingUntilItIsBackAndOneThatIsUnmountedIsNot() {
    for (Node node : bed.nodes().subList(0, 3)) {
      bed.mount(node);
    }
    bed.nodes().subList(0, 3).forEach(node -> ClusterBed.awaitMembers(node, 3));
    Node here = bed.node(0);
    Node victim = bed.node(1);
    Node never = bed.node(3);
    assertMisses(here, 3, 4, never);
    assertThat(ask(here, "status", mountpoint(here)).expect(4).out())
        .contains(never.address() + " since 20", ", the start of this mount");
    bed.mount(never);
    assertMissesNobody(here, 4);

    long killed = victim.mounted().daemon();
    victim.mounted().killDaemon();
    victim.mounted().awaitSuccessor(killed);
    assertMissesNobody(here, 4);
    assertMissesNobody(victim, 4);

    victim.kill9();
    assertMisses(here, 3, 4, victim);
    bed.mount(victim);
    assertMissesNobody(here, 4);

    victim.mounted().close();
    assertMissesNobody(here, 3);
    // Its own daemon is replaced meanwhile, and one that begins now knows it, too.
    long former = here.mounted().daemon();
    here.mounted().killDaemon();
    here.mounted().awaitSuccessor(former);
    assertMissesNobody(here, 3);
    bed.node(2).kill9();
    assertMisses(here, 2, 3, bed.node(2));
    bed.mount(bed.node(2));
    assertMissesNobody(bed.node(2), 3);
  }

  /** The others take a cut-off node for a member for some 12 s. */
  @Test
  void nodesThatLeaveAfterAnotherWasCutOff_areNotMissed() {
    bed.mountAll();
    Node cut = bed.node(3);
    cut.cut();
    bed.node(1).mounted().close();
    bed.node(2).mounted().close();
    assertMisses(bed.node(0), 1, 2, cut);
  }

  @Test
  void nodesWithoutAList_missThoseThatWereHere() {
    Path shared = bed.scratch().directory("nodes").resolve("d");
    for (Node node : bed.nodes().subList(0, 3)) {
      mountWithoutAList(node, shared);
    }
    Node here = bed.node(0);
    assertMissesNobody(here, 3);
    Node lost = bed.node(1);
    String address = lost.address();
    List<String> logs = List.of(log(bed.node(2)), log(here));
    lost.kill9();
    bed.node(2).mounted().close();
    awaitMissing(here, 1, logs);
    ClusterBed.awaitMembers(here, 1);
    Path place = here.mounted().mountpoint();
    assertThat(ask(here, "status", "--all-nodes", place.toString()).expect(4).out())
        .contains("1 of 2 expected nodes, missing: ");
    Status before = here.mounted().status();
    assertThat(before.text("cluster.missing.0.address")).isEqualTo(address);
    // The next daemon knows what is in the file: a busy disk may take it later than users are told.
    Path kept = rollCall(here);
    Await.until(
        () -> kept + ": " + text(kept) + ends(logs),
        SOON,
        () -> text(kept).contains("\nMISSING\t") && text(kept).contains("\nLEFT\t"));
    String left = kept + ": " + text(kept);
    long former = here.mounted().daemon();
    here.mounted().killDaemon();
    here.mounted().awaitSuccessor(former);
    Await.until(
        () -> here.mounted().status() + "\n" + left + "\n" + text(kept) + ends(logs),
        SOON,
        () -> here.mounted().status().size("cluster.missing") == 1);
    assertThat(here.mounted().status().text("cluster.missing.0.since"))
        .isEqualTo(before.text("cluster.missing.0.since"));
    mountWithoutAList(lost, shared);
    assertMissesNobody(here, 2);
  }

  /** What a daemon leaves to the next one of its mount. */
  private static Path rollCall(Node node) {
    try (Stream<Path> files = Files.walk(node.pmfs().state())) {
      return files.filter(file -> file.endsWith("cluster-nodes")).findFirst().orElseThrow();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String text(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void mountWithoutAList(Node node, Path shared) {
    List<String> options = List.of("--cluster", "job", "--cluster-dir", shared.toString());
    node.mount(
        bed.dataset().root(),
        Stream.concat(options.stream(), Stream.of("--cluster-address", node.address()))
            .toArray(String[]::new));
  }
}
