package io.pmfs.cli.control;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.daemon.TestRun;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.metadata.FileName;
import io.pmfs.mounts.DaemonRecord;
import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class PathListTest {
  private static final DatasetPaths DATASET =
      new DatasetPaths(DaemonRecord.of("/mnt/ä", "/lustre/data", 1, "", ""));

  @TempDir private Path temporary;
  private TestRun world;

  @SuppressWarnings("NullAway.Init")
  PathListTest() {}

  @BeforeEach
  void makeWorld() {
    world = new TestRun(temporary);
  }

  /** Chars are bytes. */
  private List<FileName> read(String bytes) throws Exception {
    return lines(bytes).stream().flatMap(Optional::stream).toList();
  }

  private List<Optional<FileName>> lines(String bytes) throws Exception {
    world.in = new ByteArrayInputStream(bytes.getBytes(ISO_8859_1));
    List<Optional<FileName>> lines = new ArrayList<>();
    long count =
        PathList.parse(
            "--list",
            "-",
            world.invocation(),
            DATASET,
            path -> lines.add(Optional.ofNullable(path)));
    assertThat(count).isEqualTo(lines.stream().filter(Optional::isPresent).count());
    return lines;
  }

  private static FileName[] names(String... bytes) {
    return List.of(bytes).stream().map(FileName::ofLatin1).toArray(FileName[]::new);
  }

  @Test
  void read_plainLines_areInOrderWithDuplicates() throws Exception {
    assertThat(read("b\na/c\nb\n")).containsExactly(names("b", "a/c", "b"));
  }

  @Test
  void read_lastLineWithoutAnEnd_counts() throws Exception {
    assertThat(read("a\nb")).containsExactly(names("a", "b"));
  }

  @Test
  void read_carriageReturnsAndEmptyLines_areSkipped() throws Exception {
    assertThat(read("a\r\n\n\r\nb\r\n")).containsExactly(names("a", "b"));
    assertThat(lines("a\n\nb").stream().map(Optional::isPresent))
        .as("but counted")
        .containsExactly(true, false, true);
  }

  @Test
  void read_spacesAndBytesThatAreNoUtf8_stay() throws Exception {
    assertThat(read(" a \n\u00ff\u0080/x\n\t\n"))
        .containsExactly(names(" a ", "\u00ff\u0080/x", "\t"));
  }

  @Test
  void read_nothing_isEmpty() throws Exception {
    assertThat(read("")).isEmpty();
    assertThat(read("\n\r\n")).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({
    "./a//b/, a/b",
    "a/../b, b",
    "a/b/../../c, c",
    "., ''",
    "/lustre/data/x, x",
    "/lustre/data/, ''",
    "/lustre//data/./x/../y, y",
    "/mnt/\u00c3\u00a4/x, x",
  })
  void read_otherWaysToWriteAPath_areTheSamePath(String line, String path) throws Exception {
    assertThat(read(line + "\n")).containsExactly(names(path));
  }

  @ParameterizedTest
  @CsvSource({
    "/etc/passwd",
    "/lustre/data2/x",
    "/lustre",
    "/lustre/data/../other",
    "..",
    "a/../../b",
    "../data/x"
  })
  void read_pathOutside_isRefusedWithItsLine(String line) {
    assertThatThrownBy(() -> read("a\n\n" + line + "\nb\n"))
        .isInstanceOfSatisfying(
            MountFailure.class,
            e -> {
              assertThat(e.exitStatus()).isEqualTo(ExitStatus.USAGE);
              assertThat(e.line())
                  .isEqualTo(
                      "standard input:3: "
                          + line
                          + ": outside of /mnt/ä and its source /lustre/data");
            });
  }

  @Test
  void read_nul_isRefused() {
    assertThatThrownBy(() -> read("a\0b\0")).hasMessageContaining("standard input:1: has a NUL");
  }

  @Test
  void read_endlessLine_isRefusedBeforeItFillsTheMemory() {
    assertThatThrownBy(() -> read("a\n" + "x".repeat(70_000)))
        .hasMessageContaining("standard input:2: longer than any path");
  }

  @Test
  void read_file_isRelativeToTheWorkingDirectory() throws Exception {
    Files.writeString(world.directory.resolve("list.txt"), "a\n/b\n");

    assertThatThrownBy(
            () -> PathList.parse("--list", "list.txt", world.invocation(), DATASET, path -> {}))
        .hasMessageStartingWith("list.txt:2: /b: outside of");
  }

  @Test
  void read_missingFile_namesTheOption() {
    assertThatThrownBy(
            () -> PathList.parse("--order", "no.txt", world.invocation(), DATASET, path -> {}))
        .hasMessage("--order: no.txt: no such file or directory");
  }
}
