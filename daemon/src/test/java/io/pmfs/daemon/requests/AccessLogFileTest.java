package io.pmfs.daemon.requests;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.places.OwnPath;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class AccessLogFileTest {
  private static final int MAX_BYTES = 100;

  @TempDir private Path directory;
  private Path path = Path.of("unset");
  private Instant now = Lines.TIME;
  private AccessLogFile file =
      new AccessLogFile(path, OwnPath.ofProcess()::replaceableFile, 0, 0, () -> now);

  @BeforeEach
  void makeFile() {
    path = directory.resolve("logs/access");
    file = another();
  }

  @AfterEach
  void close() {
    file.close();
  }

  private AccessLogFile another() {
    return new AccessLogFile(path, OwnPath.ofProcess()::replaceableFile, MAX_BYTES, 2, () -> now);
  }

  private Path older(int number) {
    return path.resolveSibling("access." + number);
  }

  @Test
  void open_newFile_isForItsOwnerOnly() throws IOException {
    file.open();

    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
        .isEqualTo("rw-------");
    assertThat(
            PosixFilePermissions.toString(Files.getPosixFilePermissions(path.resolveSibling(""))))
        .isEqualTo("rwx------");
  }

  @Test
  void open_existingFile_isAppendedTo() throws IOException {
    file.open();
    file.take("one\n", 1);
    file.close();

    file = another();
    file.open();
    file.take("two\n", 1);

    assertThat(Files.readAllLines(path)).containsExactly("one", "two");
  }

  @Test
  void open_whatIsNoFile_isRefused() throws IOException {
    Files.createDirectories(path);

    assertThatThrownBy(file::open)
        .isInstanceOf(IOException.class)
        .hasMessageContaining("not a regular file");
  }

  @Test
  void open_fileOfAnotherMount_isRefused() throws IOException {
    file.open();
    try (AccessLogFile second = another()) {
      assertThatThrownBy(second::open).hasMessageContaining("another mount writes its requests");
    }

    file.take("one\n", 1);
    file.close();
    try (AccessLogFile second = another()) {
      second.open();
    }
    assertThat(Files.readAllLines(path)).containsExactly("one");
  }

  @Test
  void take_moreThanAFileHolds_keepsSoManyOlderOnes() throws IOException {
    file.open();
    for (int i = 0; i < 8; i++) {
      file.take("line " + i + "x".repeat(40) + "\n", 1); // two in a file
    }

    assertThat(Files.readString(path)).startsWith("line 6").contains("line 7");
    assertThat(Files.readString(older(1))).startsWith("line 4").contains("line 5");
    assertThat(Files.readString(older(2))).startsWith("line 2").contains("line 3");
    assertThat(older(3)).doesNotExist();
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
        .isEqualTo("rw-------");
    try (AccessLogFile second = another()) {
      assertThatThrownBy(second::open).hasMessageContaining("another mount");
    }
  }

  @Test
  void take_fileRemovedOrMovedAway_makesItAnew() throws IOException {
    file.open();
    file.take("one\n", 1);
    Files.move(path, directory.resolve("moved"));
    now = now.plusSeconds(2);
    file.take("two\n", 1);
    Files.delete(path);
    now = now.plusSeconds(2);
    file.take("three\n", 1);

    assertThat(Files.readAllLines(directory.resolve("moved"))).containsExactly("one");
    assertThat(Files.readAllLines(path)).containsExactly("three");
    assertThat(file.missing()).isZero();
  }

  /** Directories in place of the older files: not even root can rename a file to them. */
  @Test
  void take_cannotBeWritten_countsAndSaysSoOnceItCan() throws IOException {
    file.open();
    file.take("x".repeat(MAX_BYTES - 1) + "\n", 1);
    Files.createDirectories(older(1).resolve("full"));
    Files.createDirectories(older(2).resolve("full"));

    file.take("lost\n", 1);
    file.take("lost\nlost\n", 2);
    assertThat(file.missing()).isEqualTo(3);

    Files.delete(older(2).resolve("full"));
    file.take("kept\n", 1);
    file.take("too\n", 1);

    assertThat(file.missing()).isEqualTo(3);
    List<String> lines = Files.readAllLines(path);
    assertThat(LogLine.parse(lines.get(0)))
        .isEqualTo(new LogLine.Missing(now, 3, "the file could not be written"));
    assertThat(lines.subList(1, 3)).containsExactly("kept", "too");
  }

  /** A failing rotation moves nothing: the older files are unchanged. */
  @Test
  void take_directoryGone_losesNoOlderFile() throws IOException {
    file.open();
    file.take("x".repeat(MAX_BYTES - 1) + "\n", 1);
    file.take("two\n", 1);
    Files.delete(path);
    Files.createDirectory(path);
    for (int i = 0; i < 5; i++) {
      file.take("y".repeat(MAX_BYTES) + "\n", 1);
    }

    assertThat(file.missing()).isEqualTo(5);
    assertThat(Files.readString(older(1))).startsWith("xxx");
    Files.delete(path);
    now = now.plusSeconds(2);
    file.take("back\n", 1);
    assertThat(Files.readString(path)).contains("5 requests are missing here").endsWith("back\n");
  }
}
