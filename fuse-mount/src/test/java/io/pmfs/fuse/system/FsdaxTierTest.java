package io.pmfs.fuse.system;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.memory.ReadResult;
import io.pmfs.tier.CopyReader;
import io.pmfs.tier.CopyWriter;
import io.pmfs.tier.DaxFiles.FileMapping;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.PersistentMemory;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierContract;
import io.pmfs.tier.TierSettings;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import jdk.nio.mapmode.ExtendedMapMode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The contract of tiers, and properties of memory only, on real fsdax. */
@Tag("fsdax")
final class FsdaxTierTest extends TierContract {
  private static final int LARGE = (15 << 20) + 12_345;

  private final LinuxDaxFiles files = new LinuxDaxFiles();
  private Path directory;

  @BeforeEach
  void makeDirectory() throws IOException {
    directory = PersistentMemory.directory();
  }

  @AfterEach
  void remove() throws Exception {
    if (directory != null) {
      Shell.run(directory, "rm -rf \"$PWD\"");
    }
  }

  @Override
  protected Tier newTier(long capacityBytes) throws IOException {
    return new DirectoryTier(
        new TierSettings("pm:test", "pm", directory, capacityBytes, 0),
        DirectoryTier.Usage.NONE,
        files);
  }

  /**
   * Writes like a copied large file: allocates first, then writes blocks in pieces out of order.
   */
  private static void putLarge(Tier tier, long number, byte[] content) throws IOException {
    CopyWriter writer = create(tier, number, content.length);
    try {
      writer.allocate(content.length);
      int block = 1 << 20;
      for (int first : new int[] {block, 0}) {
        for (int at = first; at < content.length; at += 2 * block) {
          int size = Math.min(block, content.length - at);
          writer.write(at, ByteBuffer.wrap(content, at, size).slice());
        }
      }
      writer.commit();
    } finally {
      writer.close();
    }
  }

  @Test
  void status_onMemory_isRealForAReason() throws Exception {
    try (Tier tier = newTier(64 << 20)) {
      assertThat(Objects.requireNonNull(tier.status().dax()).real()).isTrue();
      assertThat(tier.status().dax().reason()).containsPattern("^(ext4|xfs) on /dev/pmem");
      assertThat(tier.isDirect()).isTrue();
    }
  }

  @Test
  void allocate_moreThanThereIs_saysThatThereIsNoRoom() throws Exception {
    try (FileChannel channel = FileChannel.open(directory.resolve("large"), CREATE_NEW, WRITE)) {
      assertThatThrownBy(() -> files.allocate(channel, 1L << 40))
          .isInstanceOf(IOException.class)
          .hasMessage("No space left on device");
    }
  }

  /** The kernel marks a mapping made with MAP_SYNC (proc(5), VmFlags). */
  @Test
  void mapping_madeWithSync_isMarkedBySf() throws Exception {
    Path file = directory.resolve("file");
    try (FileChannel channel = FileChannel.open(file, CREATE_NEW, WRITE, READ)) {
      var memory = channel.map(ExtendedMapMode.READ_WRITE_SYNC, 0, 4096);
      memory.put(0, (byte) 1);
      memory.force();
      assertThat(vmFlags(file)).contains(" sf");
      assertThat(files.isDirect(channel)).isTrue();
    }
  }

  private static String vmFlags(Path file) throws IOException {
    String flags = "";
    boolean here = false;
    for (String line : Files.readAllLines(Path.of("/proc/self/smaps"))) {
      if (line.matches("[0-9a-f]+-[0-9a-f]+ .*")) {
        here = line.endsWith(file.toString());
      } else if (here && line.startsWith("VmFlags:")) {
        flags = line;
      }
    }
    return flags;
  }

  @Test
  void read_largeCopy_isTheMemoryItself() throws Exception {
    byte[] content = content(1, LARGE + 4097);
    try (Tier tier = newTier(64 << 20)) {
      putLarge(tier, 7, content);
      try (CopyReader reader = Objects.requireNonNull(tier.open(7, null))) {
        ReadResult result = reader.read(0, content.length);
        assertThat(((ReadResult.Mapping) result).memory()).isEqualTo(ByteBuffer.wrap(content));
      }
    }
  }

  @Test
  void read_copyCutShort_endsAsAReadDoes() throws Exception {
    byte[] content = content(1, LARGE);
    try (Tier tier = newTier(64 << 20)) {
      putLarge(tier, 7, content);
      try (CopyReader reader = Objects.requireNonNull(tier.open(7, null))) {
        ReadResult.Mapping result = (ReadResult.Mapping) reader.read(LARGE - 65536, 65536);
        try (FileChannel file = FileChannel.open(Objects.requireNonNull(tier.file(7)), WRITE)) {
          file.truncate(4096);
        }
        assertThatThrownBy(() -> result.copyTo(ByteBuffer.allocate(65536)))
            .isInstanceOf(EOFException.class);
      }
    }
  }

  /**
   * The number of faults shows the size of mappings: 4,096 for a file in pages, one for every 2 MiB
   * in huge pages. Writing files alternately distinguishes an allocation at once from one that grew
   * with the file.
   */
  @Test
  void copies_writtenTogether_areMappedInPiecesOf2MiB() throws Exception {
    assumeTrue(
        PersistentMemory.alignsFiles(),
        "XFS aligns files to 2 MiB only if it was made with mkfs.xfs -d su=2m,sw=1");
    try (Tier tier = newTier(256 << 20)) {
      for (int i = 0; i < 7; i++) {
        put(tier, 100 + i, content(i, 4096 * (2 * i + 1)));
      }
      byte[] content = content(1, LARGE);
      CopyWriter[] writers = new CopyWriter[3];
      for (int i = 0; i < writers.length; i++) {
        writers[i] = create(tier, 10 + i, LARGE);
        writers[i].allocate(LARGE);
      }
      int piece = 1 << 20;
      for (int at = 0; at < LARGE; at += piece) {
        for (CopyWriter writer : writers) {
          writer.write(at, ByteBuffer.wrap(content, at, Math.min(piece, LARGE - at)).slice());
        }
      }
      for (int i = 0; i < writers.length; i++) {
        writers[i].commit();
        writers[i].close();
        long faults = faultsOf(Objects.requireNonNull(tier.file(10 + i)));
        assertThat(faults)
            .as("faults while each page of copy %d is touched once", i)
            .isLessThan(LARGE / 4096 / 4);
      }
    }
  }

  private long faultsOf(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file);
        FileMapping mapping = Objects.requireNonNull(files.map(channel, LARGE))) {
      return PageFaults.ofReading(mapping.range(0, LARGE));
    }
  }
}
