package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import io.pmfs.daemon.requests.LogLine;
import io.pmfs.posix.Await;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Who asked a mount what, as its access log and a profile have it. */
@Tag("alone") // counts what the kernel asks for: other tests empty its caches
final class AccessLogIT {
  private static final int SIZE = 300_000;
  private static final String NAME = "a \"file\"\n";

  @Installed private Installation pmfs;
  private Path source;
  private Path log;

  @BeforeEach
  void makeSource() throws IOException {
    source = pmfs.directory("source");
    log = pmfs.scratch().root().resolve("access");
    Files.createDirectory(source.resolve("train"));
    Files.write(source.resolve("train").resolve(NAME), new byte[SIZE]);
  }

  private List<LogLine.Request> linesOf(long pid) throws IOException {
    return Files.readAllLines(log).stream()
        .map(
            line -> {
              LogLine parsed = LogLine.parse(line);
              assertThat(parsed).as(line).isInstanceOf(LogLine.Request.class);
              return (LogLine.Request) parsed;
            })
        .filter(line -> line.call().pid() == pid)
        .toList();
  }

  private static long run(Path output, String... line) throws Exception {
    Process process = new ProcessBuilder(line).redirectOutput(output.toFile()).start();
    process.waitFor();
    return process.pid();
  }

  @Test
  void accessLog_ofAMount_hasWhatWasAskedAndAProfileAddsItUp() throws Exception {
    Path output = pmfs.scratch().root().resolve("output");
    try (MountedPmfs mount =
        pmfs.mount(source, "--access-log", log.toString(), "--read-mode", "page-cache")) {
      Path train = mount.mountpoint().resolve("train");
      long reader = run(output, "cat", train.resolve(NAME).toString());
      long seeker = run(output, "cat", train.resolve("missing").toString());
      Await.until("lines of both", Duration.ofSeconds(30), () -> Files.exists(log) && has(seeker));

      List<LogLine.Request> read = linesOf(reader);
      assertThat(read.stream().filter(line -> line.call().operation().equals("read")))
          .isNotEmpty()
          .allMatch(line -> line.call().target().equals("/train/a %22file%22%0A"))
          .allMatch(line -> line.result().equals("OK"));
      assertThat(read.stream().mapToLong(line -> Math.max(0, line.bytes())).sum()).isEqualTo(SIZE);
      assertThat(read)
          .filteredOn(line -> line.call().operation().equals("lookup"))
          .extracting(line -> line.call().target(), LogLine.Request::result)
          .contains(tuple("/train/a %22file%22%0A", "OK"));
      assertThat(linesOf(seeker))
          .extracting(line -> line.call().request(), LogLine.Request::result)
          .containsExactly(tuple("lookup (\"/train/missing\")", "ENOENT"));
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(log)))
          .isEqualTo("rw-------");
      assertThat(mount.status().text("accessLog.file")).isEqualTo(log.toString());
      assertThat(mount.status().number("accessLog.missing")).isZero();

      profileLive(mount, output);
    }
    Status total =
        Status.parse(pmfs.run("profile", log.toString(), "--by", "path", "--json").expect(0).out());
    assertThat(total.number("all.bytes")).isEqualTo(SIZE);
    assertThat(total.number("unreadable")).isZero();
  }

  private boolean has(long pid) {
    try {
      return !linesOf(pid).isEmpty();
    } catch (IOException e) {
      return false;
    }
  }

  private void profileLive(MountedPmfs mount, Path output) throws Exception {
    Process profile =
        pmfs.start(
            ProcessBuilder.Redirect.to(output.toFile()),
            "profile",
            mount.mountpoint().toString(),
            "--by",
            "path",
            "--for",
            "300ms",
            "--json");
    int asked = 0;
    while (profile.isAlive()) {
      Files.exists(mount.mountpoint().resolve("train/none-" + asked++));
      Thread.sleep(5);
    }
    assertThat(profile.waitFor()).isZero();
    List<String> lines = Files.readAllLines(output);
    Status total = Status.parse(lines.get(lines.size() - 1));
    assertThat(total.flag("isTotal")).isTrue();
    assertThat(total.number("all.count")).isBetween(1L, (long) asked);
    assertThat(total.number("all.failed")).isEqualTo(total.number("all.count"));
    assertThat(total.text("rows.0.key")).startsWith("/train/none-");
  }
}
