package io.pmfs.daemon.report;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.io.Resources;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import io.pmfs.daemon.dataset.FakeDataset;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Programs read {@code status --json}: recorded fields stay, in their order. */
final class RecordedStatusTest {
  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().serializeNulls().create();

  private static List<String> lines(String json) {
    return json.lines().map(line -> line.replaceFirst(",$", "")).toList();
  }

  @Test
  void json_ofAStatus_hasWhatWasRecorded() throws Exception {
    TaskReport task =
        new TaskReport(
            "7", "stage", "running", null, false, true, 10, 1000, 3, 300, "a", 2, 1, 4, 5, 1500, 2);
    String json = GSON.toJson(List.of(SampleReport.inCluster("n1"), task));
    String recorded =
        Resources.toString(Resources.getResource(FakeDataset.class, "status.json"), UTF_8);

    assertThat(lines(json)).containsSubsequence(lines(recorded));
  }
}
