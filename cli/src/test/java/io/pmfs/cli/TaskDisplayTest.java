package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.daemon.report.TaskReport;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class TaskDisplayTest {
  private final List<String> lines = new ArrayList<>();
  private final ByteArrayOutputStream terminal = new ByteArrayOutputStream();
  private Instant now = Instant.EPOCH;

  private static TaskReport report(String state, long bytes, boolean isFinal, String directory) {
    return new TaskReport(
        "1", "stage", state, null, false, isFinal, 4000, 8 << 20, 1000, bytes, directory, 1, 2, 3,
        4, 2000, 1);
  }

  private static TaskReport running(long bytes) {
    return report("running", bytes, true, "a/b");
  }

  private void passMs(long ms) {
    now = now.plusMillis(ms);
  }

  @Test
  void lines_shortTask_areNone() {
    try (TaskDisplay display = new TaskLines(lines::add, () -> now)) {
      display.show(running(0));
      passMs(1999);
      display.show(running(1));
      passMs(1);
      display.show(report("ended", 2, true, ""));
    }

    assertThat(lines).isEmpty();
  }

  @Test
  void lines_longTask_comeEveryFewSeconds() {
    try (TaskDisplay display = new TaskLines(lines::add, () -> now)) {
      for (int i = 0; i <= 120; i++) {
        display.show(running(2 << 20));
        passMs(100);
      }
    }

    assertThat(lines)
        .hasSize(3)
        .containsOnly(
            "staging: 1,000 of 4,000 files, 2.0 MiB of 8.0 MiB, 1.0 MiB/s, 6s left, in a/b");
  }

  @Test
  void lines_unknownTotals_promiseNoEnd() {
    assertThat(TaskLines.text(report("running", 1 << 20, false, "")))
        .isEqualTo("staging: 1,000 of 4,000 or more files, 1.0 MiB of 8.0 MiB, 512 KiB/s");
  }

  @Test
  void bar_shortTask_isNotDrawn() {
    try (TaskDisplay display = bar()) {
      display.show(running(0));
      passMs(999);
      display.show(running(1));
      passMs(10);
      display.show(report("ended", 2, true, ""));
    }

    assertThat(terminal.toByteArray()).isEmpty();
  }

  @Test
  void bar_longTask_showsHowFarItIsInOneLine() {
    try (TaskDisplay display = bar()) {
      display.show(running(0));
      passMs(1000);
      display.show(report("running", 2 << 20, true, "a/b\033[2J"));
      display.show(report("ended", 8 << 20, true, "z\033[2J"));
    }

    String drawn = terminal.toString(UTF_8);
    assertThat(drawn).contains("staging", "100%", "8/8 MiB", "1,000 of 4,000 files", "z?[2J");
    assertThat(drawn).doesNotContain("\033[2J").endsWith("\n").containsOnlyOnce("\n");
  }

  private TaskDisplay bar() {
    return new TaskBar(new PrintStream(terminal, true, UTF_8), 120, () -> now);
  }
}
