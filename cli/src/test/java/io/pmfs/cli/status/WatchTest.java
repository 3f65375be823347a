package io.pmfs.cli.status;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonParser;
import io.pmfs.cli.TestWorld;
import io.pmfs.daemon.report.SampleReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.report.TierReport;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.posix.Await;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class WatchTest {
  private static final Duration NO_TIME = Duration.ofMillis(1);

  @TempDir private Path temporary;

  private static StatusReport report(long bytes, long hits, long pid) {
    StatusReport before = SampleReport.of("/mnt/dataset", "/lustre/imagenet");
    TierReport tier = before.dataset().tiers().get(0);
    return SampleReport.with(
        before,
        Map.of(
            "pid",
            pid,
            "tiers",
            List.of(
                SampleReport.with(
                    tier,
                    Map.of("usedBytes", tier.usedBytes() / 2, "hits", hits, "readBytes", bytes))),
            "reads",
            SampleReport.with(
                before.dataset().reads(),
                Map.of(
                    "requests",
                    bytes / 1000,
                    "bytes",
                    bytes,
                    "fromTiers",
                    bytes,
                    "fromSource",
                    0,
                    "fetched",
                    0))));
  }

  @Test
  void block_twoReports_hasRatesOfTheTimeBetween() {
    List<String> lines = WatchBlock.of(report(5 << 20, 300, 1), report(1 << 20, 100, 1), 2);

    assertThat(String.join("\n", lines))
        .contains(
            "/lustre/imagenet on /mnt/dataset",
            "  working: the source was asked for 12 %",
            "2.0 MiB/s in 2,097/s requests")
        .containsPattern("pm +2\\.0 MiB/s +100\\.0 % +100/s +\\[#{10}\\.{10}] 100 GiB of 200 GiB")
        .contains("memory       200 MiB resident")
        .contains("waiting      3 requests, the longest for 12s: read of part-000/x by pid 4711");
  }

  @Test
  void block_firstReportOrAnotherDaemon_hasNoRates() {
    String first = String.join("\n", WatchBlock.of(report(5, 3, 1), null, 0));
    String replaced = String.join("\n", WatchBlock.of(report(5, 3, 2), report(9, 9, 1), 1));

    assertThat(first).containsPattern("reading +- in - requests").contains("since the start");
    assertThat(replaced).containsPattern("reading +- in - requests");
    assertThat(first).containsPattern("read +10 +1\\.50 ms +2\\.00 ms");
  }

  @Test
  void block_oldDaemonAndHostileNames_areShown() {
    StatusReport hostile = SampleReport.of("/mnt/\u001b[2J\n", "/src\u0007");
    StatusReport old =
        new com.google.gson.Gson()
            .fromJson(
                new com.google.gson.Gson()
                    .toJson(hostile)
                    .replaceAll("\"(engagement|requests|memory|waiting|recent)\":", "\"x$1\":"),
                StatusReport.class);

    List<String> lines = WatchBlock.of(old, old, 1);

    assertThat(String.join("", lines)).doesNotContain("\u001b", "\u0007", "\n");
    assertThat(lines.get(0)).isEqualTo("/src%07 on /mnt/%1B[2J%0A");
  }

  @Test
  void screen_terminal_isPaintedOverAndLeftAsItWas() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (WatchScreen screen = new WatchScreen(new PrintStream(out, true, UTF_8), 3)) {
      screen.show(List.of("a", "b", "c", "d"));
      screen.show(List.of("e"));
    }
    assertThat(out.toString(UTF_8))
        .isEqualTo(
            "\u001b[?7l\u001b[?25l\ra\u001b[K\n\rb\u001b[K\n\u001b[J"
                + "\u001b[2A\re\u001b[K\n\u001b[J"
                + "\r\u001b[J\u001b[?25h\u001b[?7h");
  }

  @Test
  void screen_noTerminal_isPlainText() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (WatchScreen screen = new WatchScreen(new PrintStream(out, true, UTF_8), null)) {
      assertThat(screen.show(List.of("a", "b"))).isTrue();
      screen.show(List.of("c"));
    }
    assertThat(out.toString(UTF_8)).isEqualTo("a\nb\n\nc\n");
  }

  @Test
  void screen_nobodyReads_saysSo() {
    PrintStream broken =
        new PrintStream(
            new OutputStream() {
              @Override
              public void write(int b) throws IOException {
                throw new IOException("Broken pipe");
              }
            },
            false,
            UTF_8);

    try (WatchScreen screen = new WatchScreen(broken, null)) {
      assertThat(screen.show(List.of("a"))).isFalse();
    }
  }

  /** A mount that returns the test's answers and is then gone. */
  private static final class Script implements StatusWatch.Asker {
    private final Deque<Object> answers;

    Script(Object... answers) {
      this.answers = new ArrayDeque<>(List.of(answers));
    }

    @Override
    public @Nullable List<DaemonRecord> mounts() {
      return answers.isEmpty()
          ? null
          : List.of(DaemonRecord.of("/mnt/dataset", "/lustre/imagenet", 1, "s", "l"));
    }

    @Override
    public List<Replies.Reply<StatusReport>> ask(List<DaemonRecord> mounts) {
      Object answer = answers.remove();
      return List.of(
          answer instanceof StatusReport report
              ? new Replies.Reply<>(mounts.get(0), report, null)
              : new Replies.Reply<>(
                  mounts.get(0),
                  null,
                  new MountFailure(ExitStatus.FAILED, String.valueOf(answer))));
    }
  }

  @Test
  void watch_daemonReplacedThenUnmounted_goesOnAndEnds() throws Exception {
    TestWorld world = new TestWorld(temporary);
    Script script =
        new Script(report(1 << 20, 1, 1), report(2 << 20, 2, 1), "no answer", report(0, 0, 2));

    assertThat(new StatusWatch(world.invocation(), script, NO_TIME).blocks()).isFalse();

    assertThat(world.output().split("\n\n", -1)).hasSize(4);
    assertThat(world.output()).contains("no answer", "pid 2");
  }

  @Test
  void watch_interrupted_endsWell() throws Exception {
    TestWorld world = new TestWorld(temporary);
    List<Object> many = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      many.add(report(i, i, 1));
    }
    StatusWatch watch =
        new StatusWatch(world.invocation(), new Script(many.toArray()), Duration.ofHours(1));
    Thread interrupter =
        new Thread(
            () -> {
              Await.until("it can be interrupted", () -> !world.interrupts.isEmpty());
              world.interrupts.get(0).accept(130);
            });
    interrupter.start();

    assertThat(watch.blocks()).as("the mount is there still").isTrue();
    interrupter.join();
  }

  @Test
  void watch_json_isOneObjectInEachLine() throws Exception {
    TestWorld world = new TestWorld(temporary);
    Script script = new Script(report(1, 1, 1), "no answer", report(2, 2, 1));

    new StatusWatch(world.invocation(), script, NO_TIME)
        .lines(reports -> new com.google.gson.Gson().toJson(reports.get(0)));

    assertThat(world.output().lines().toList()).hasSize(2);
    assertThat(world.output().lines())
        .allSatisfy(line -> assertThat(JsonParser.parseString(line).isJsonObject()).isTrue());
    assertThat(world.errors()).isEqualTo("pmfs: no answer\n");
  }
}
