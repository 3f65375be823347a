package io.pmfs.fuse.system;

import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class FileUseTest {
  @TempDir private Path directory;

  private Path file;

  @BeforeEach
  void make() throws IOException {
    file = Files.writeString(directory.resolve("f"), "content");
  }

  @Test
  void isOpen_openForReadingOrWriting_is_untilItIsClosed() throws Exception {
    assertThat(FileUse.isOpen(file)).isFalse();
    try (FileChannel reader = FileChannel.open(file)) {
      assertThat(reader.size()).isEqualTo(7);
      assertThat(FileUse.isOpen(file)).isTrue();
    }
    try (FileChannel writer = FileChannel.open(file, WRITE)) {
      assertThat(writer.size()).isEqualTo(7);
      assertThat(FileUse.isOpen(file)).isTrue();
    }

    assertThat(FileUse.isOpen(file)).isFalse();
  }

  @Test
  void isOpen_underWayInAMessage_is() throws Exception {
    Path socket = directory.resolve("socket");
    try (DescriptorSocket listening = DescriptorSocket.listen(socket, 1);
        DescriptorSocket sending = DescriptorSocket.connect(socket, Duration.ofSeconds(10));
        DescriptorSocket receiving = listening.accept(1 << 16)) {
      try (PassedFile sent = PassedFile.open(file)) {
        sending.send(new byte[1], sent.descriptor());
      }
      assertThat(FileUse.isOpen(file)).isTrue();
      assertThat(receiving.descriptor()).isNotNegative();
    }

    assertThat(FileUse.isOpen(file)).isFalse();
  }

  /** It only keeps the inode; a program that needs the room truncates the file first. */
  @Test
  void isOpen_descriptorThatCannotRead_isNot() throws Exception {
    int path = LibC.INSTANCE.open(Posix.terminated(file.toString()), Posix.O_PATH);
    try {
      assertThat(FileUse.isOpen(file)).isFalse();
    } finally {
      LibC.INSTANCE.close(path);
    }
  }

  @Test
  void isOpen_noFile_fails() {
    assertThatThrownBy(() -> FileUse.isOpen(directory.resolve("g")))
        .isInstanceOf(FsException.class);
  }
}
