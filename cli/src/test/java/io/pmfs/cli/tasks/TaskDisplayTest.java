package io.pmfs.cli.tasks;

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
    assertThat(drawn)
        .contains("staging", "100%", "8.0 MiB of 8.0 MiB", "1,000 of 4,000 files", "in z%1B[2J");
    assertThat(drawn).doesNotContain("\033[2J").endsWith("\n").containsOnlyOnce("\n");
  }

  private static TaskReport large(String task, boolean isFinal) {
    long bytes = 1023L << 30;
    return new TaskReport(
        "1",
        task,
        "running",
        null,
        false,
        isFinal,
        12_345_678,
        bytes * 10,
        1_234_567,
        bytes,
        "train/n02123045/一二三四五六七八九十",
        1,
        2,
        3,
        4,
        5_030_000,
        1);
  }

  private static int barWidth(String line) {
    return line.indexOf('|') < 0 ? 0 : line.lastIndexOf('|') - line.indexOf('|') - 1;
  }

  @Test
  void line_of80Columns_hasABarAndAllFigures() {
    assertThat(ProgressLine.of(large("stage", true), 79))
        .isEqualTo(
            "staging 10% |█▌              | 1023G/10.0T 208M/s 12h 34m left 1.2M/12.3M files");
    assertThat(ProgressLine.of(large("prefetch", true), 79))
        .isEqualTo(
            "prefetching 10% |██▉                          | 1023G/10.0T 208M/s 12h 34m left");
    assertThat(barWidth(ProgressLine.of(running(2 << 20), 79))).isGreaterThanOrEqualTo(15);
  }

  @Test
  void line_of60Columns_hasTheFigures() {
    assertThat(ProgressLine.of(large("stage", true), 59).strip())
        .isEqualTo("staging 10%: 1023G/10.0T 208M/s 12h 34m left");
    assertThat(ProgressLine.of(large("stage", false), 59).strip())
        .isEqualTo("staging: 1023G/10.0T+ 208M/s 1.2M/12.3M+ files");
  }

  @Test
  void line_ofWideTerminal_hasWordsAndTheEndOfALongDirectory() {
    assertThat(ProgressLine.of(large("stage", true), 149))
        .startsWith("staging 10% |")
        .contains("| 1,234,567 of 12,345,678 files, 1023 GiB of 10.0 TiB, 208 MiB/s, 12h 34m left")
        .contains(", in ...");
  }

  @Test
  void line_ofATaskThatCountsFiles_hasFilesOnce() {
    assertThat(ProgressLine.of(large("evict", true), 59))
        .startsWith("evicting 9% |")
        .endsWith("| 1.2M/12.3M files 12h 34m left");
  }

  @Test
  void line_ofAnyWidth_fitsIntoIt() {
    for (int columns = 1; columns <= 300; columns++) {
      for (boolean isFinal : new boolean[] {true, false}) {
        for (String task : List.of("stage", "metadata")) {
          String line = ProgressLine.of(large(task, isFinal), columns);
          assertThat(line.length()).isLessThanOrEqualTo(columns);
          assertThat(barWidth(line))
              .satisfiesAnyOf(w -> assertThat(w).isZero(), w -> assertThat(w).isBetween(15, 40));
        }
      }
    }
  }

  private TaskDisplay bar() {
    return new TaskBar(new PrintStream(terminal, true, UTF_8), 140, () -> now);
  }
}
