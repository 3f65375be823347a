package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What a mount tells of itself, over its socket and over TCP on this machine. */
final class MetricsIT {
  private static final int SIZE = 300_000;

  @Installed private Installation pmfs;
  private Path source;

  @BeforeEach
  void makeSource() throws IOException {
    source = pmfs.directory("source");
    Files.write(source.resolve("f"), new byte[SIZE]);
  }

  private static double value(String text, String sample) {
    Matcher matcher = Pattern.compile("(?m)^" + sample + "\\{[^\\n]*} (\\S+)$").matcher(text);
    assertThat(matcher.find()).as("%s in\n%s", sample, text).isTrue();
    return Double.parseDouble(matcher.group(1));
  }

  @Test
  void mount_withMetrics_tellsTheSameOverTcpAndItsSocket() throws Exception {
    try (MountedPmfs mount = pmfs.mount(source, "--metrics", "0", "--read-mode", "page-cache")) {
      Files.readAllBytes(mount.mountpoint().resolve("f"));
      Status status = mount.awaitCopies(1);
      String url = status.text("metrics");
      String text = Command.run("curl", "-sSf", "-m", "30", url + "metrics").expect(0).out();
      String page = Command.run("curl", "-sSf", "-m", "30", url).expect(0).out();

      assertThat(url).matches("http://127\\.0\\.0\\.1:\\d+/");
      assertThat(value(text, "pmfs_read_bytes_total")).isEqualTo(SIZE);
      assertThat(value(text, "pmfs_miss_bytes_total")).isEqualTo(SIZE);
      assertThat(value(text, "pmfs_tier_copies")).isEqualTo(1);
      assertThat(text)
          .containsPattern(
              "pmfs_request_duration_seconds_count\\{[^\\n]*operation=\"read\"[^\\n]*} [1-9]");
      String socket = pmfs.controlSocket(mount.mountpoint()).toString();
      assertThat(
              Command.run("curl", "-sSf", "--unix-socket", socket, "http://pmfs/metrics")
                  .expect(0)
                  .out())
          .contains("pmfs_reads_total{", "jvm_memory_used_bytes{");
      assertThat(page).contains("<title>pmfs</title>");
      assertThat(Command.run("curl", "-sSf", "-m", "30", url + "history").expect(0).out())
          .contains("\"missed\":" + SIZE);
      assertThat(Command.run("curl", "-sSf", "-X", "POST", url + "umount").exit()).isNotZero();
      assertThat(pmfs.run("status", mount.mountpoint().toString()).expect(0).out())
          .contains(
              "filling: the first read of a file comes from the source and makes a copy", url);
    }
  }

  @Test
  void mount_metricsOnAPortThatIsTaken_isRefusedAndLeavesNothing() throws Exception {
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      String port = Integer.toString(taken.getLocalPort());
      Command refused = pmfs.run(pmfs.mountArguments(source, pmfs.mountpoint(), "--metrics", port));

      assertThat(refused.exit()).as("%s", refused).isEqualTo(1);
      assertThat(refused.errorLines()).hasSize(1);
      assertThat(refused.err())
          .contains("--metrics 127.0.0.1:" + port + ": Address already in use; choose another");
      assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
    }
  }

  @Test
  @OnRequest("cases")
  void status_tierWithoutRoom_saysThatAllComesFromTheSourceAndEndsWith4() throws Exception {
    Files.write(source.resolve("large"), new byte[4 * SIZE]);
    String tier = "ssd:" + pmfs.tier() + ":1M";
    try (MountedPmfs mount = pmfs.mount(source, "--tier", tier)) {
      String mountpoint = mount.mountpoint().toString();
      assertThat(pmfs.run("status", mountpoint).expect(0).out())
          .contains("not read yet: nothing was read");
      Files.readAllBytes(mount.mountpoint().resolve("large"));

      Command status = pmfs.run("status", mountpoint, "--json").expect(4);

      assertThat(Status.parse(status.out()).text("engagement.state")).isEqualTo("source-only");
      assertThat(status.errorLines()).hasSize(1);
      assertThat(status.err()).contains("all reads go to the source", "no room");
    }
  }

  @Test
  @OnRequest("cases")
  void watch_untilUnmounted_endsWithALine() throws Exception {
    Path output = pmfs.scratch().root().resolve("watched");
    Process watch;
    try (MountedPmfs mount = pmfs.mount(source)) {
      watch =
          pmfs.start(
              ProcessBuilder.Redirect.to(output.toFile()),
              "status",
              mount.mountpoint().toString(),
              "--watch",
              "200ms");
      Await.until(
          "two blocks", Duration.ofSeconds(30), () -> text(output).split(" on ", -1).length > 2);
    }
    assertThat(watch.waitFor()).isEqualTo(3);
    assertThat(Files.readString(output)).contains("memory  ").doesNotContain("\u001b");
  }

  private static String text(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
