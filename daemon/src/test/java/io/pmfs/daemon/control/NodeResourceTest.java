package io.pmfs.daemon.control;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.daemon.report.SampleReport;
import io.pmfs.daemon.tasks.FakeTasks;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.metadata.FileName;
import io.pmfs.tasks.TaskFinding;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskProgress.State;
import io.pmfs.tasks.TaskRequest;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class NodeResourceTest {
  private static final String STAGE = "{\"task\":\"stage\",\"paths\":[\"train\"]}";

  private final FakeTasks fakes = new FakeTasks();
  private final KeptTasks tasks = new KeptTasks(fakes, null);
  private final NodeResource resource = new NodeResource(() -> SampleReport.inCluster("n1"), tasks);

  private NodeRequests.Answer ask(String method, String path, String body) {
    return resource.answer(method, path, body);
  }

  @Test
  void node_asked_isTheStatus() {
    NodeRequests.Answer answer = ask("GET", "node", "");

    assertThat(answer.status()).isEqualTo(200);
    assertThat(answer.json())
        .contains("\"cluster\":{\"name\":\"train\",\"members\":[{\"node\":\"n1\",");
  }

  @Test
  void task_posted_isStartedAndFollowed() {
    assertThat(ask("POST", "task", STAGE).json()).contains("\"state\":\"running\"");
    assertThat(ask("GET", "task/latest", "").json()).contains("\"task\":\"stage\"");
    assertThat(ask("DELETE", "task/latest", "").json()).contains("\"state\":\"cancelled\"");
    assertThat(fakes.last().progress().state()).isEqualTo(State.CANCELLED);
    assertThat(ask("GET", "task/latest/findings?from=0&limit=5", "").json())
        .isEqualTo("{\"findings\":[]}");
  }

  @Test
  void check_posted_isStarted() {
    assertThat(ask("POST", "task", STAGE.replace("stage", "check")).json())
        .contains("\"state\":\"running\"");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{\"task\":\"evict\",\"paths\":[\"\"]}",
        "{\"task\":\"verify\",\"paths\":[\"\"]}",
        "{\"task\":\"verify\",\"paths\":[\"\"],\"repair\":true}",
        "{\"task\":\"prefetch\",\"paths\":[\"\"],\"windowBytes\":1}"
      })
  void task_thatAMemberMayNotStart_isRefused(String task) {
    NodeRequests.Answer answer = ask("POST", "task", task);

    assertThat(answer.status()).as(answer.json()).isEqualTo(403);
    assertThat(answer.json()).contains("only stage and check");
    assertThat(fakes.started).isEmpty();
  }

  @Test
  void findings_ofWhatWasBegunHere_areTheNodesOwn() {
    fakes.findings =
        List.of(new TaskFinding(FileName.of("own"), TaskFinding.Kind.FAILED, "a reason"));
    tasks.start(new TaskRequest.Evict(TaskPaths.of(List.of(FileName.of("")))));

    assertThat(ask("GET", "task/latest/findings", "").json()).isEqualTo("{\"findings\":[]}");
    assertThat(ask("DELETE", "task/latest", "").status()).isEqualTo(409);
    assertThat(fakes.last().progress().state()).isEqualTo(State.RUNNING);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          GET    | x                             | 404 | x: try node or task
          GET    | tasks                         | 404 | try
          GET    | task/latest                   | 404 | no task has been started
          GET    | task/latest/findings?limit=-1 | 400 | limit
          GET    | task/latest/findings?x=1      | 400 | unknown parameter x
          PUT    | task                          | 405 | POST
          PUT    | node                          | 405 | GET
          POST   | node                          | 405 | GET
          POST   | task                          | 400 | not a task in JSON
          """)
  void answer_toWhatMakesNoSense_isAnError(String method, String path, int status, String message) {
    NodeRequests.Answer answer = ask(method, path, "{");

    assertThat(answer.status()).isEqualTo(status);
    assertThat(answer.json()).startsWith("{\"error\":\"").contains(message);
    assertThat(fakes.started).isEmpty();
  }

  @Test
  void task_whileAnotherRuns_isRefused() {
    ask("POST", "task", STAGE);

    NodeRequests.Answer answer = ask("POST", "task", STAGE.replace("train", "val"));

    assertThat(answer)
        .isEqualTo(new NodeRequests.Answer(409, "{\"error\":\"staging is running\"}"));
  }
}
