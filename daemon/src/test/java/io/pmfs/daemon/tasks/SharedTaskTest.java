package io.pmfs.daemon.tasks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.daemon.report.PeerReason;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.daemon.report.TaskSummary;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.NoThreads;
import io.pmfs.tasks.TaskFinding;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskProgress.State;
import io.pmfs.tasks.TaskRequest;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class SharedTaskTest {
  private static final TaskRequest REQUEST = stage("train");

  @TempDir private Path directory;
  private final FakeNodes nodes = new FakeNodes();
  private final FakeNodes.Node here = nodes.add("n1");
  private final FakeNodes.Node there = nodes.add("n2");

  private static TaskRequest stage(String... paths) {
    return new TaskRequest.Stage(
        TaskPaths.of(List.of(paths).stream().map(FileName::of).toList()),
        new TaskRequest.Limits(0, 0, 0),
        null,
        false,
        false,
        false);
  }

  private TaskReport report() {
    return Objects.requireNonNull(here.tasks.latest());
  }

  private TaskReport outcome() throws InterruptedException {
    Await.until("the task ends", () -> !report().isRunning());
    return report();
  }

  private static void ends(FakeNodes.Node node, int done, int noRoom) throws InterruptedException {
    Await.until("the node begins", () -> !node.fakes.started.isEmpty());
    node.fakes.last().is(FakeTasks.progress(State.ENDED, done, 0, noRoom, 0));
  }

  private List<String> reasons() {
    return here.tasks.findings(0, 1000).stream().map(TaskFinding::reason).toList();
  }

  @Test
  void stage_onTwoNodes_isTheSumOfBoth() throws Exception {
    here.tasks.start(REQUEST);
    ends(here, 3, 0);
    ends(there, 4, 0);

    TaskReport report = outcome();
    assertThat(report.done()).isEqualTo(7);
    assertThat(report.nodes()).isEqualTo(2);
    assertThat(report.complete()).isTrue();
    assertThat(TaskSummary.of(report).text()).startsWith("staged 7 files on 2 nodes; 7 files of");
    assertThat(there.fakes.last().request()).isEqualTo(REQUEST);
  }

  @Test
  void stage_whileAnotherNodeIsAtIt_runs() throws Exception {
    here.tasks.start(REQUEST);
    ends(here, 3, 0);
    Await.until("two nodes work", () -> report().nodes() == 2);

    assertThat(report().isRunning()).isTrue();
    assertThat(report().totalFiles()).isEqualTo(13);
    ends(there, 4, 0);
    assertThat(outcome().done()).isEqualTo(7);
  }

  @Test
  void evict_inACluster_staysHere() {
    here.tasks.start(new TaskRequest.Evict(TaskPaths.of(List.of(FileName.of("a")))));

    assertThat(report().nodes()).isEqualTo(1);
    assertThat(nodes.asked).isEmpty();
  }

  @Test
  void stage_findings_areOfAllNodesAndSayWhere() throws Exception {
    List<TaskFinding> many =
        IntStream.range(0, 600)
            .mapToObj(i -> new TaskFinding(FileName.of("f" + i), TaskFinding.Kind.NO_ROOM, "full"))
            .toList();
    here.fakes.findings = many.subList(0, 2);
    there.fakes.findings = many;
    here.tasks.start(REQUEST);
    ends(here, 1, 2);
    ends(there, 1, 600);

    TaskReport report = outcome();
    assertThat(report.noRoom()).isEqualTo(602);
    assertThat(report.complete()).isFalse();
    List<TaskFinding> found = new ArrayList<>();
    for (var page = here.tasks.findings(0, 100);
        !page.isEmpty();
        page = here.tasks.findings(found.size(), 100)) {
      found.addAll(page);
    }
    assertThat(found).hasSize(602);
    assertThat(found.get(0).reason()).isEqualTo("full");
    assertThat(found.get(601))
        .isEqualTo(new TaskFinding(FileName.of("f599"), TaskFinding.Kind.NO_ROOM, "on n2: full"));
  }

  @Test
  void stage_peerAtAnotherTask_isAFinding() throws Exception {
    there.tasks.startPart(stage("val"));
    here.tasks.start(REQUEST);
    ends(here, 3, 0);

    TaskReport report = outcome();
    assertThat(report.complete()).isFalse();
    assertThat(report.failed()).isEqualTo(1);
    assertThat(report.nodes()).isEqualTo(1);
    assertThat(reasons())
        .containsExactly("on n2: its part did not start: staging is running; run this again");
  }

  @Test
  void stage_whileNoThreadCanAskThePeer_endsWithAFinding() throws Exception {
    try (NoThreads none = NoThreads.named("part-n2")) {
      here.tasks.start(REQUEST);
      assertThat(none.refused()).isEqualTo(1);
    }
    assertThat(report().isRunning()).isTrue();
    ends(here, 3, 0);

    assertThat(outcome().complete()).isFalse();
    assertThat(reasons())
        .hasSize(1)
        .first()
        .asString()
        .startsWith("on n2: cannot start a thread for its part");
  }

  @Test
  void stage_thatThePeerRefuses_isAFinding() throws Exception {
    there.fakes.refusal = new IllegalArgumentException("there is no tier 'x'");
    here.tasks.start(REQUEST);
    ends(here, 3, 0);

    outcome();
    assertThat(reasons())
        .containsExactly("on n2: its part did not start: there is no tier 'x'; run this again");
  }

  @Test
  void stage_begunOnBothNodesAtOnce_endsOnBoth() throws Exception {
    // Each runs its own task before it receives the other's request.
    there.isSilent = true;
    here.isSilent = true;
    here.tasks.start(REQUEST);
    there.tasks.start(REQUEST);
    there.isSilent = false;
    here.isSilent = false;
    // Both have heard of the other's before either ends.
    Await.until("two nodes work", () -> report().nodes() == 2);
    Await.until("two nodes work", () -> Objects.requireNonNull(there.tasks.latest()).nodes() == 2);
    ends(here, 3, 0);
    ends(there, 4, 0);

    TaskReport report = outcome();
    assertThat(report.done()).isEqualTo(7);
    Await.until("the task ends", () -> !Objects.requireNonNull(there.tasks.latest()).isRunning());
    assertThat(Objects.requireNonNull(there.tasks.latest()).done()).isEqualTo(7);
    assertThat(here.fakes.started).hasSize(1);
    assertThat(there.fakes.started).hasSize(1);
  }

  @Test
  void cancel_whileBothAreAtIt_stopsBoth() throws Exception {
    here.tasks.start(REQUEST);
    Await.until("two nodes work", () -> report().nodes() == 2);

    here.tasks.cancel();

    TaskReport report = outcome();
    assertThat(report.state()).isEqualTo("cancelled");
    assertThat(report.done()).isEqualTo(6);
    assertThat(there.fakes.last().progress().state()).isEqualTo(State.CANCELLED);
    assertThat(reasons()).isEmpty();
  }

  @Test
  void cancel_whatThePeersOwnUserBegan_leavesItRunningThere() throws Exception {
    there.isSilent = true;
    here.tasks.start(REQUEST);
    there.tasks.start(REQUEST);
    there.isSilent = false;
    Await.until("two nodes work", () -> report().nodes() == 2);

    here.tasks.cancel();

    assertThat(outcome().state()).isEqualTo("cancelled");
    assertThat(there.fakes.last().progress().state()).isEqualTo(State.RUNNING);
  }

  @Test
  void stage_partThatIsCancelledThere_isAFinding() throws Exception {
    here.tasks.start(REQUEST);
    Await.until("two nodes work", () -> report().nodes() == 2);
    there.tasks.cancel();
    ends(here, 3, 0);

    assertThat(outcome().complete()).isFalse();
    assertThat(reasons()).containsExactly("on n2: its part was cancelled there; run this again");
  }

  @Test
  void stage_partThatFails_isAFinding() throws Exception {
    here.tasks.start(REQUEST);
    Await.until("two nodes work", () -> report().nodes() == 2);
    there.fakes.last().is(FakeTasks.progress(State.FAILED, 0, 0, 0, 0));
    ends(here, 3, 0);

    assertThat(outcome().complete()).isFalse();
    assertThat(reasons())
        .containsExactly("on n2: its part failed: the tiers are gone; run this again");
  }

  @Test
  void stage_peerThatLeaves_isAFindingInTheEnd() throws Exception {
    here.tasks.start(REQUEST);
    Await.until("two nodes work", () -> report().nodes() == 2);
    there.leave();
    ends(here, 3, 0);

    TaskReport report = outcome();
    assertThat(report.state()).isEqualTo("ended");
    assertThat(report.complete()).isFalse();
    assertThat(reasons())
        .containsExactly("on n2: the node left before its part was done; run this again");
  }

  @Test
  void stage_peerThatIsStartedAgain_isAskedAgain() throws Exception {
    here.tasks.start(REQUEST);
    Await.until("two nodes work", () -> report().nodes() == 2);
    there.leave();
    there.start(null);
    ends(there, 4, 0);
    ends(here, 3, 0);

    assertThat(outcome().done()).isEqualTo(7);
    assertThat(outcome().complete()).isTrue();
  }

  @Test
  void stage_peerWhoseNextDaemonGoesOn_countsOnce() throws Exception {
    Path file = directory.resolve("task.json");
    there.leave();
    there.start(file);
    here.tasks.start(REQUEST);
    Await.until("two nodes work", () -> report().nodes() == 2);
    there.tasks.handOver();
    there.leave();
    nodes.asked.clear();
    there.start(file);
    there.tasks.resume();
    Await.until(
        "the node reports",
        () -> nodes.asked.containsAll(List.of("n1 n2 POST task", "n1 n2 GET task/latest")));
    ends(there, 4, 0);
    ends(here, 3, 0);

    assertThat(outcome().done()).isEqualTo(7);
    assertThat(there.fakes.started).hasSize(1);
  }

  @Test
  void resume_ofASharedTask_findsTheOthersThoughTheyAreMetLater() throws Exception {
    Path file = directory.resolve("task.json");
    here.leave();
    here.start(file);
    here.tasks.start(REQUEST);
    Await.until("two nodes work", () -> report().nodes() == 2);
    here.tasks.handOver();
    var door = there.leave();
    here.leave();
    here.start(file);

    here.tasks.resume();
    there.answersWith(door);
    Await.until("two nodes work", () -> report().nodes() == 2);
    ends(here, 3, 0);
    ends(there, 4, 0);

    assertThat(outcome().done()).isEqualTo(7);
    assertThat(there.fakes.started).hasSize(1);
  }

  @Test
  void stage_listLargerThanAPeersLimit_isAskedInPieces() throws Exception {
    String[] paths =
        IntStream.range(0, 30_000)
            .mapToObj(i -> "a-directory-with-a-long-name/and-another-one-in-it/file-" + i)
            .toArray(String[]::new);
    there.fakes.outcome = FakeTasks.progress(State.ENDED, 2, 0, 0, 0);
    here.tasks.start(stage(paths));
    ends(here, 3, 0);

    TaskReport report = outcome();
    assertThat(reasons()).isEmpty();
    assertThat(there.fakes.started).hasSizeGreaterThan(1);
    assertThat(there.fakes.started.stream().flatMap(t -> t.paths.stream()).toList())
        .isEqualTo(Stream.of(paths).map(FileName::of).toList());
    assertThat(report.done()).isEqualTo(3 + 2L * there.fakes.started.size());
    assertThat(report.nodes()).isEqualTo(2);
  }

  @Test
  void stage_peerThatAnswersRubbish_isAFinding() throws Exception {
    there.answersWith((method, path, body) -> new NodeRequests.Answer(200, "[1,2"));
    here.tasks.start(REQUEST);
    ends(here, 3, 0);

    assertThat(outcome().complete()).isFalse();
    assertThat(reasons()).singleElement().asString().startsWith("on n2: its part did not start: ");
  }

  @Test
  void stage_peerWithBrokenFindings_keepsItsCounts() throws Exception {
    NodeRequests good = there.door();
    there.answersWith(
        (method, path, body) ->
            path.contains("findings")
                ? new NodeRequests.Answer(
                    200,
                    "{\"findings\":[{\"path\":\"\\\\xZZ\",\"outcome\":\"?\",\"reason\":\"\"}]}")
                : good.answer(method, path, body));
    here.tasks.start(REQUEST);
    ends(here, 3, 0);
    ends(there, 4, 0);

    assertThat(outcome().done()).isEqualTo(7);
  }

  @Test
  void startPart_whatIsRunningAlready_isThat() {
    TaskReport one = there.tasks.startPart(REQUEST);

    assertThat(there.tasks.startPart(REQUEST).id()).isEqualTo(one.id());
    assertThat(there.fakes.started).hasSize(1);
    assertThatThrownBy(() -> there.tasks.startPart(stage("val")))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("staging is running");
  }

  @Test
  void startPart_asksNobodyElse() {
    there.tasks.startPart(REQUEST);

    assertThat(nodes.asked).isEmpty();
    assertThat(Objects.requireNonNull(there.tasks.latest()).nodes()).isEqualTo(1);
  }

  @Test
  void reason_ofARefusal_isWhatThePeerSaid() {
    assertThat(
            PeerReason.of(
                new PeerException(
                    PeerException.Kind.FAILED, "n2 answered 409: {\"error\":\"a \\\"b\\\"\"}")))
        .isEqualTo("a \"b\"");
    assertThat(PeerReason.of(new PeerException(PeerException.Kind.FAILED, "n2 is silent")))
        .isEqualTo("n2 is silent");
  }
}
