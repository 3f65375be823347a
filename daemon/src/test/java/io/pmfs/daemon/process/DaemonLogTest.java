package io.pmfs.daemon.process;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.machine.MountFailure;
import io.pmfs.settings.TestMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

final class DaemonLogTest {
  private static final Logger log = LoggerFactory.getLogger(DaemonLogTest.class);

  @TempDir private Path directory;

  @Test
  void start_line_hasTimeLevelThreadAndMessageInUtf8() throws Exception {
    Path file = directory.resolve("made/x.log");
    DaemonLog.start(file, "info", false);
    log.info("näme {}", 7);
    log.debug("not at this level");
    DaemonLog.stop();

    assertThat(Files.readString(file, UTF_8))
        .matches(
            "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}(Z|[+-]\\d\\d:\\d\\d) INFO  \\[.+\\]"
                + " näme 7\n");
  }

  @Test
  void start_hostileNames_areOneLineEach() throws Exception {
    Path file = directory.resolve("x.log");
    String name = "a\n2026-01-01 ERROR forged\u001b[2J\u202e\u2066\u200b\ufeff\u2028";
    DaemonLog.start(file, "info", false);
    log.info("{}: left out", name);
    log.warn(
        "failed", new IllegalStateException(name, new java.io.IOException("cause " + name, null)));
    DaemonLog.stop();

    String text = Files.readString(file, UTF_8);
    assertThat(text.codePoints())
        .noneMatch(c -> c != '\n' && c != '\t' && Character.isISOControl(c))
        .noneMatch(c -> Character.getType(c) == Character.FORMAT || c == 0x2028);
    assertThat(text.lines())
        .noneMatch(line -> line.startsWith("2026-01-01 ERROR forged"))
        .anyMatch(
            line ->
                line.endsWith(
                    "a%0A2026-01-01 ERROR forged%1B[2J%E2%80%AE%E2%81%A6%E2%80%8B%EF%BB%BF%E2%80%A8: left out"))
        .anyMatch(line -> line.startsWith("Caused by: java.io.IOException: cause a%0A2026"))
        .filteredOn(line -> !line.startsWith("\t"))
        .hasSize(4);
  }

  @Test
  void start_muchLogged_keepsFiveOlderFiles() throws Exception {
    Path file = directory.resolve("much.log");
    DaemonLog.start(file, "info", false);
    String line = "x".repeat(64 << 10);
    for (int i = 0; i < 1200; i++) {
      log.info(line);
    }
    DaemonLog.stop();

    try (var files = Files.list(directory)) {
      assertThat(files).hasSize(6).allMatch(f -> f.getFileName().toString().startsWith("much.log"));
    }
  }

  @Test
  void start_fileThatCannotBe_isUsage() throws Exception {
    Files.writeString(directory.resolve("file"), "x");

    assertThatThrownBy(() -> DaemonLog.start(directory.resolve("file/x.log"), "info", false))
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("--log-file");
    assertThatThrownBy(() -> DaemonLog.start(directory, "info", false))
        .hasMessageContaining("--log-file");
  }

  @Test
  void start_fileNameWithPatternSigns_isUsage() {
    assertThatThrownBy(() -> DaemonLog.start(directory.resolve("100%i.log"), "info", false))
        .hasMessageContaining("its path must not contain any of");
  }

  @Test
  void defaultFile_ofMountpointWithPatternSigns_works() throws Exception {
    TestMachine world = new TestMachine(directory);

    Path file = DaemonLog.defaultFile(Path.of("/m/a%i(b)\\"), directory, world.surroundings());
    DaemonLog.start(file, "info", false);
    DaemonLog.stop();

    assertThat(file.getFileName().toString()).startsWith("a_i_b__-");
  }

  @Test
  void defaultFile_ofTwoMountpointsOfOneName_differs() {
    TestMachine world = new TestMachine(directory);

    Path one = DaemonLog.defaultFile(Path.of("/a/data"), directory, world.surroundings());
    Path two = DaemonLog.defaultFile(Path.of("/b/data"), directory, world.surroundings());

    assertThat(one).isNotEqualTo(two);
    assertThat(one.getParent()).isEqualTo(directory);
    assertThat(one.getFileName().toString()).startsWith("data-").endsWith(".log");
  }

  @Test
  void defaultFile_ofRoot_isInVarLog() {
    TestMachine world = new TestMachine(directory);
    world.environment.remove("PMFS_RUNTIME_DIR");
    world.uid = 0;

    assertThat(DaemonLog.defaultFile(Path.of("/"), directory, world.surroundings()).getParent())
        .isEqualTo(Path.of("/var/log/pmfs"));
  }
}
