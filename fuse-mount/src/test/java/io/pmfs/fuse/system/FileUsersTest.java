package io.pmfs.fuse.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.writable.OutputCalls;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileUsersTest {
  private static final int NOBODY = 65534;

  private final FileUsers users = new FileUsers();
  private String self = "";

  @BeforeEach
  void requireRoot() {
    assumeTrue(LibC.INSTANCE.geteuid() == 0, "needs root");
    self = identity();
  }

  /** The file system user and group of this thread, and its supplementary groups. */
  private static String identity() {
    try {
      List<String> status = Files.readAllLines(Path.of("/proc/thread-self/status"));
      return String.join(
          "|",
          status.stream()
              .filter(line -> line.matches("(Uid|Gid|Groups):.*"))
              .map(line -> line.replace('\t', ' ').strip())
              .toList());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void call_ofAnActingThread_isTheOnlyThingThatTheUserDoes() {
    String[] inside = {""};
    try (OutputCalls.Acting acting = users.as(NOBODY, NOBODY)) {
      Objects.requireNonNull(acting);
      assertThat(identity()).isEqualTo(self);
      FileUsers.call(
          () -> {
            inside[0] = identity();
            return 0;
          });
      assertThat(identity()).isEqualTo(self);
    }
    assertThat(inside[0])
        .contains("Uid: 0 0 0 " + NOBODY)
        .contains("Gid: 0 0 0 " + NOBODY)
        .contains("Groups: " + NOBODY);
    FileUsers.call(
        () -> {
          inside[0] = identity();
          return 0;
        });
    assertThat(inside[0]).as("after the end").isEqualTo(self);
  }

  @Test
  void call_thatThrowsAnError_leavesTheThreadItself() {
    try (OutputCalls.Acting acting = users.as(NOBODY, NOBODY)) {
      Objects.requireNonNull(acting);
      assertThatThrownBy(
              () ->
                  FileUsers.call(
                      () -> {
                        throw new OutOfMemoryError("injected");
                      }))
          .isInstanceOf(OutOfMemoryError.class);
      assertThat(identity()).isEqualTo(self);
    }
  }

  /** The calls that switch back do not change the errno of the user's call. */
  @Test
  void call_thatFails_hasItsErrno(@TempDir Path directory) throws Exception {
    LinuxOutputCalls calls = new LinuxOutputCalls();
    int root = calls.openRoot(directory);
    try (OutputCalls.Acting acting = calls.actAs(NOBODY, NOBODY)) {
      Objects.requireNonNull(acting);
      assertThatThrownBy(() -> calls.mkdir(root, FileName.of("made"), 0755))
          .hasFieldOrPropertyWithValue("errno", Errno.EACCES);
      assertThatThrownBy(() -> calls.openDirectory(root, FileName.of("below")))
          .hasFieldOrPropertyWithValue("errno", Errno.EACCES);
    } finally {
      calls.close(root);
    }
  }

  /** The kernel cuts names after 15 bytes, and programs choose them. */
  @Test
  void isInGroup_ofAProgramWhoseNameIsNotText_asksTheProgram() throws Exception {
    Process program =
        new ProcessBuilder(
                "setpriv",
                "--groups",
                "4711",
                "bash",
                "-c",
                "printf '\\345' >/proc/$$/comm; echo; read -r end")
            .start();
    try {
      assertThat(program.getInputStream().read()).isEqualTo('\n');
      assertThat(users.isInGroup(Math.toIntExact(program.pid()), 0, 0, 4711)).isTrue();
      assertThat(users.isInGroup(Math.toIntExact(program.pid()), 0, 0, 4712)).isFalse();
    } finally {
      program.destroy();
    }
  }
}
