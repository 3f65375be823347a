package io.pmfs.fuse;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.fuse.system.LinuxDaxFiles;
import io.pmfs.fuse.system.Shell;
import io.pmfs.tier.DaxFiles.FileMapping;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** On an ordinary disk, where the same calls work and no file is DAX. */
final class LinuxDaxFilesTest {
  private static final long THREE_GIB = 3L << 30;

  @TempDir private Path directory;
  private final LinuxDaxFiles files = new LinuxDaxFiles();
  private FileChannel file;

  @BeforeEach
  void create() throws IOException {
    file = FileChannel.open(directory.resolve("file"), CREATE, READ, WRITE);
  }

  @AfterEach
  void close() throws IOException {
    file.close();
  }

  @Test
  void isDirect_ordinaryDisk_isFalse() {
    assertThat(files.isDirect(file)).isFalse();
  }

  @Test
  void isDirect_closedFile_isUnknown() throws Exception {
    file.close();

    assertThat(files.isDirect(file)).isNull();
  }

  @Test
  void allocate_newFile_hasSizeAndRoom() throws Exception {
    files.allocate(file, (5 << 20) + 1);

    assertThat(file.size()).isEqualTo((5 << 20) + 1);
    assertThat(blocks()).isBetween((5L << 20) + 4096, (5L << 20) + 65536);
  }

  private long blocks() throws IOException {
    String[] words = Shell.run(directory, "stat -c %b file").strip().split(" ", -1);
    return Long.parseLong(words[0]) * 512;
  }

  @Test
  void map_moreThanABufferHolds_reachesTheEnd() throws Exception {
    byte[] end = KernelFixture.content(10);
    file.write(ByteBuffer.wrap(end), THREE_GIB - 10);
    try (FileMapping mapping = Objects.requireNonNull(files.map(file, THREE_GIB))) {
      assertThat(mapping.range(THREE_GIB - 10, 10)).isEqualTo(ByteBuffer.wrap(end));
      assertThat(mapping.range(0, 4096)).isEqualTo(ByteBuffer.allocate(4096));
      assertThatThrownBy(() -> mapping.range(THREE_GIB - 10, 11))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> mapping.range(-1, 1)).isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @Test
  void range_afterClose_failsLoudly() throws Exception {
    file.write(ByteBuffer.wrap(new byte[4096]));
    FileMapping mapping = Objects.requireNonNull(files.map(file, 4096));
    assertThat(isMapped()).isTrue();
    mapping.close();
    mapping.close();

    assertThatThrownBy(() -> mapping.range(0, 1)).isInstanceOf(IllegalStateException.class);
    assertThat(isMapped()).isFalse();
  }

  private boolean isMapped() throws IOException {
    return Files.readString(Path.of("/proc/self/maps"))
        .contains(directory.toRealPath().resolve("file").toString());
  }

  @Test
  void map_emptyFile_isNone() {
    assertThat(files.map(file, 0)).isNull();
  }
}
