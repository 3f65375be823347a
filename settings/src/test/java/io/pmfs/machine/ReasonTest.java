package io.pmfs.machine;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.places.OwnDirectory;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileSystemException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

final class ReasonTest {
  @Test
  void of_errorsOfAPath_doNotNameIt() {
    for (Exception e :
        List.of(
            new DirectoryNotEmptyException("/the/path"),
            new FsException(Errno.ENOENT, "/the/path"),
            new FsException(Errno.EIO, "/the/path"),
            new FsException(Errno.EBUSY, "/the/path"),
            new FileNotFoundException("/the/path (Permission denied)"),
            new FileSystemException("/the/path", null, "Read-only file system"))) {
      assertThat(Reason.of(e)).isNotEmpty().doesNotContain("/the/path");
    }
  }

  @Test
  void of_fileNotFound_isOfTheSystem() {
    try (FileInputStream file = new FileInputStream("/no/such (thing)")) {
      throw new AssertionError(file);
    } catch (IOException e) {
      assertThat(Reason.of(e)).isEqualTo("no such file or directory");
    }
  }

  @Test
  void of_ioErrorWithAReason_isTheReason() {
    assertThat(Reason.of(new FsException(Errno.EIO, "the shard ends before its member")))
        .isEqualTo("the shard ends before its member");
  }

  @Test
  void naming_messageThatNamesThePath_doesNotRepeatIt() {
    Path path = Path.of("/mnt/d");

    assertThat(MountFailure.naming(path, "/mnt/d: busy")).isEqualTo("/mnt/d: busy");
    assertThat(MountFailure.naming(path, "/mnt/d cannot be unmounted"))
        .isEqualTo("/mnt/d cannot be unmounted");
    assertThat(MountFailure.naming(path, "/mnt/data: busy")).isEqualTo("/mnt/d: /mnt/data: busy");
    assertThat(MountFailure.naming(path, "busy")).isEqualTo("/mnt/d: busy");
  }

  @Test
  void failure_ofAFullDisk_saysSoAndWhatToDo() {
    OwnDirectory directory = new OwnDirectory(Path.of("/local/pmfs"), "tier ssd");

    assertThat(
            directory
                .failure(
                    new FileSystemException("/local/pmfs/x", null, "No space left on device"),
                    "choose another --tier",
                    null)
                .line())
        .isEqualTo(
            "/local/pmfs: tier ssd: no room on its disk; free some, or choose another --tier");
  }
}
