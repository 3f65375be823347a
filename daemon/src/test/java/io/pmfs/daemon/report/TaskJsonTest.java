package io.pmfs.daemon.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonWriter;
import io.pmfs.metadata.FileName;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskRequest;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

final class TaskJsonTest {
  private static final List<FileName> PATHS =
      List.of(FileName.of(""), FileName.of("a b/%"), FileName.ofLatin1("\u00ff"));
  private static final TaskRequest.Limits LIMITS = new TaskRequest.Limits(7, 1L << 40, 9);

  static List<TaskRequest> requests() {
    return List.of(
        new TaskRequest.Stage(TaskPaths.of(PATHS), LIMITS, "ssd:/x", true, false, false),
        new TaskRequest.Stage(TaskPaths.of(PATHS), LIMITS, null, false, true, false),
        new TaskRequest.Stage(
            TaskPaths.of(PATHS), new TaskRequest.Limits(0, 0, 0), null, false, false, false),
        new TaskRequest.Check(TaskPaths.of(PATHS), false, false),
        new TaskRequest.Check(TaskPaths.of(PATHS), true, true),
        new TaskRequest.Prefetch(TaskPaths.of(PATHS), LIMITS, 20L << 30, 0),
        new TaskRequest.Prefetch(TaskPaths.of(PATHS), LIMITS, 20L << 30, 0).from(7),
        new TaskRequest.Verify(TaskPaths.of(PATHS), true, false),
        new TaskRequest.Verify(TaskPaths.of(PATHS), false, true),
        new TaskRequest.Evict(TaskPaths.of(PATHS)));
  }

  @ParameterizedTest
  @MethodSource("requests")
  void read_ofWritten_isTheSame(TaskRequest request) throws Exception {
    StringWriter json = new StringWriter();
    TaskJson.write(request, new JsonWriter(json));

    assertThat(read(json.toString())).isEqualTo(request);
  }

  @Test
  void read_asSomebodyTypesIt_needsOnlyTaskAndPaths() throws Exception {
    assertThat(read("{\"paths\": [\"train\"], \"task\": \"stage\"}"))
        .isEqualTo(
            new TaskRequest.Stage(
                TaskPaths.of(List.of(FileName.of("train"))),
                new TaskRequest.Limits(0, 0, 0),
                null,
                false,
                false,
                false));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "[]",
        "{",
        "null",
        "{\"task\":\"stage\"}",
        "{\"task\":\"stage\",\"paths\":[]}",
        "{\"task\":\"fly\",\"paths\":[\"a\"]}",
        "{\"task\":\"stage\",\"paths\":\"a\"}",
        "{\"task\":\"stage\",\"paths\":[1,{}]}",
        "{\"task\":\"stage\",\"paths\":[null]}",
        "{\"task\":\"stage\",\"paths\":[\"a\"],\"jobs\":-1}",
        "{\"task\":\"stage\",\"paths\":[\"a\"],\"jobs\":1.5}",
        "{\"task\":\"stage\",\"paths\":[\"a\"],\"jobs\":\"x\"}",
        "{\"task\":\"stage\",\"paths\":[\"a\"],\"speed\":1}",
        "{\"task\":\"stage\",\"paths\":[\"a\"],\"windowBytes\":1}",
        "{\"task\":\"check\",\"paths\":[\"a\"],\"pin\":true}",
        "{\"task\":\"evict\",\"paths\":[\"a\"],\"repair\":true}",
        "{\"task\":\"prefetch\",\"paths\":[\"a\"]}",
        "{\"task\":\"stage\",\"paths\":[\"/etc\"]}",
        "{\"task\":\"stage\",\"paths\":[\"../x\"]}",
        "{\"task\":\"stage\",\"paths\":[\"a/./b\"]}",
        "{\"task\":\"stage\",\"paths\":[\"a//b\"]}",
        "{\"task\":\"stage\",\"paths\":[\"a/\"]}",
        "{\"task\":\"stage\",\"paths\":[\"a%00b\"]}",
        "{\"task\":\"stage\",\"paths\":[\"a%2f%2e%2e%2fb\"]}",
      })
  void read_wrong_isRefusedInWords(String json) {
    assertThatThrownBy(() -> read(json))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageMatching("[a-z].*");
  }

  @Test
  void read_pathOfMoreBytesThanLinuxTakes_isRefused() throws Exception {
    String fits = "a/".repeat(2047) + "b";
    assertThat(read("{\"task\":\"evict\",\"paths\":[\"" + fits + "\"]}").paths().count())
        .isEqualTo(1);

    assertThatThrownBy(() -> read("{\"task\":\"evict\",\"paths\":[\"" + fits + "b\"]}"))
        .hasMessageContaining("longer than 4095 bytes");
  }

  private static TaskRequest read(String json) throws IOException {
    return TaskJson.parse(new JsonReader(new StringReader(json)), null);
  }
}
