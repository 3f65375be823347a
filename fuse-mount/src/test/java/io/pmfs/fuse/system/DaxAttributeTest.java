package io.pmfs.fuse.system;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.tier.CopyWriter;
import io.pmfs.tier.DaxVerdict;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.PersistentMemory;
import io.pmfs.tier.TierSettings;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The attribute DAX of statx(2), which decides if MAP_SYNC is refused: on virtio-pmem only this
 * shows that copies bypass the page cache.
 */
@Tag("fsdax")
final class DaxAttributeTest {
  private static final boolean SYNCHRONOUS = "nvdimm".equals(System.getenv("PMEM_KIND"));
  private static final long STATX_ATTR_DAX = 0x200000;

  private final LinuxDaxFiles files = new LinuxDaxFiles();
  private Path directory;

  @BeforeEach
  void make() throws IOException {
    directory = PersistentMemory.directory();
  }

  @AfterEach
  void remove() throws IOException {
    if (directory != null) {
      Shell.run(directory, "rm -rf \"$PWD\"");
    }
  }

  private void assertAttribute(Path directory, boolean expected) throws IOException {
    Path file = directory.resolve("file");
    try (FileChannel channel = FileChannel.open(file, CREATE_NEW, READ, WRITE)) {
      assertThat(files.isDirect(channel)).as("%s", file).isEqualTo(expected);
    }
  }

  /** A file that is not DAX on the same machine: otherwise the attribute would prove nothing. */
  @Test
  void attribute_ofAFile_isDaxOnPersistentMemoryAlone() throws Exception {
    Path elsewhere = Files.createTempDirectory(Path.of("/dev/shm"), "pmfs");
    try {
      assertAttribute(directory, true);
      assertAttribute(elsewhere, false);
    } finally {
      Shell.run(elsewhere, "rm -rf \"$PWD\"");
    }
  }

  /** Compared with another program, which has the layout of struct statx from the kernel. */
  @Test
  void attribute_ofACopy_isWhatXfsIoSays() throws Exception {
    assumeTrue(Files.exists(Path.of("/usr/sbin/xfs_io")), "needs xfs_io, of xfsprogs");
    try (DirectoryTier tier = tier()) {
      Path copy = put(tier);
      long attributes = statx(copy, "attributes");
      assertThat(statx(copy, "attributes_mask") & STATX_ATTR_DAX).isEqualTo(STATX_ATTR_DAX);
      assertThat(attributes & STATX_ATTR_DAX).isEqualTo(STATX_ATTR_DAX);
      try (FileChannel channel = FileChannel.open(copy)) {
        assertThat(files.isDirect(channel)).isTrue();
      }
    }
  }

  private DirectoryTier tier() throws IOException {
    return new DirectoryTier(
        new TierSettings("pm:test", "pm", directory, 16 << 20, 0), DirectoryTier.Usage.NONE, files);
  }

  private static Path put(DirectoryTier tier) throws IOException {
    CopyWriter writer = Objects.requireNonNull(tier.create(7, 10_000));
    try {
      writer.write(0, ByteBuffer.allocate(10_000));
      writer.commit();
    } finally {
      writer.close();
    }
    return Objects.requireNonNull(tier.file(7));
  }

  private long statx(Path file, String field) throws IOException {
    String all = Shell.run(directory, "/usr/sbin/xfs_io -r -c 'statx -r' " + file);
    Matcher line = Pattern.compile("stat\\." + field + " = 0x([0-9a-f]+)").matcher(all);
    assertThat(line.find()).as(all).isTrue();
    return Long.parseLong(line.group(1), 16);
  }

  @Test
  void status_ofATier_saysWhatAttributeAndMapSyncTell() throws Exception {
    try (DirectoryTier tier = tier()) {
      DaxVerdict dax = Objects.requireNonNull(tier.status().dax());

      assertThat(tier.isDirect()).as("read and mapped past the page cache").isTrue();
      assertThat(dax.real()).as(dax.reason()).isEqualTo(SYNCHRONOUS);
      assertThat(dax.reason())
          .containsPattern(
              SYNCHRONOUS
                  ? "^(ext4|xfs) on /dev/pmem"
                  : "^DAX, but without MAP_SYNC \\(virtio-pmem");
    }
  }
}
