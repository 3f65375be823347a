package io.pmfs.fuse.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.tier.PoolException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class PoolFileTest {
  private static final int MIB = 1 << 20;

  @TempDir private Path temporary;

  @Test
  void create_file_isPrivateAndHasAllItsBytes() throws Exception {
    Path path = temporary.resolve("a.pool");
    PoolFile.create(path, 3 * MIB + 5000);

    assertThat(Files.size(path)).isEqualTo(3 * MIB + 4096);
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
        .isEqualTo("rw-------");
    assertThatThrownBy(() -> PoolFile.create(path, MIB))
        .isInstanceOf(FileAlreadyExistsException.class);
  }

  @Test
  void create_largerThanTheDisk_leavesNothing() {
    Path path = temporary.resolve("a.pool");

    assertThatThrownBy(() -> PoolFile.create(path, 1L << 55)).isInstanceOf(IOException.class);
    long free = temporary.toFile().getUsableSpace();
    assertThatThrownBy(() -> PoolFile.create(path, free + (1L << 30)))
        .isInstanceOf(PoolException.class)
        .hasMessageContaining("no room");
    assertThat(path).doesNotExist();
  }

  @Test
  void write_file_isThereForTheNext() throws Exception {
    Path path = temporary.resolve("a.pool");
    PoolFile.create(path, 2 * MIB);
    try (PoolFile memory = PoolFile.open(path)) {
      assertThat(memory.size()).isEqualTo(2 * MIB);
      assertThat(memory.dax().real()).isFalse();
      assertThat(memory.dax().reason()).startsWith("emulated: a file on ");
      memory.slice(MIB - 4, 8).putLong(0, 0x1122334455667788L);
      memory.persist(MIB - 4, 8);
      memory.sync(MIB - 4, 8);
      assertThat(memory.slice(2 * MIB, 0).remaining()).isZero();
      assertThatThrownBy(() -> memory.slice(2 * MIB - 1, 2))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
    assertThat(Files.readAllBytes(path)[MIB - 4]).isEqualTo((byte) 0x88);
    try (PoolFile memory = PoolFile.open(path)) {
      assertThat(memory.slice(MIB - 4, 8).getLong(0)).isEqualTo(0x1122334455667788L);
    }
  }

  @Test
  void slice_beyondTwoGibibytes_isWhereItBelongs() throws Exception {
    Path path = Files.createFile(temporary.resolve("a.pool"));
    long size = (5L << 30) + 4096;
    try (var file = new java.io.RandomAccessFile(path.toFile(), "rw")) {
      file.setLength(size);
    }
    try (PoolFile memory = PoolFile.open(path)) {
      for (long at :
          new long[] {(1L << 30) - 100, (2L << 30) - 100, (3L << 30) - 1, (5L << 30), size - 200}) {
        ByteBuffer range = memory.slice(at, 200);
        range.put(0, (byte) 7).put(199, (byte) 9);
        memory.sync(at, 200);
        try (var file = new java.io.RandomAccessFile(path.toFile(), "r")) {
          file.seek(at);
          assertThat(file.read()).isEqualTo(7);
          file.seek(at + 199);
          assertThat(file.read()).isEqualTo(9);
        }
      }
      assertThat(memory.slice((1L << 30) - 1, 1 << 30).remaining()).isEqualTo(1 << 30);
    }
  }

  @Test
  void check_fileCutShort_saysSoBeforeASignalDoes() throws Exception {
    Path path = temporary.resolve("a.pool");
    PoolFile.create(path, 2 * MIB);
    try (PoolFile memory = PoolFile.open(path)) {
      memory.check(MIB - 10, 20, false);
      memory.check(MIB - 10, 20, true);
      assumeTrue(memory.checks(), "needs Linux 5.14");
      try (var file = new java.io.RandomAccessFile(path.toFile(), "rw")) {
        file.setLength(MIB);
      }
      memory.check(MIB - 20, 20, true);
      assertThatThrownBy(() -> memory.check(MIB - 10, 20, false))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("cannot be read (");
      assertThatThrownBy(() -> memory.check(MIB - 10, 20, true))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("cannot be written (");
    }
  }

  @Test
  void open_inUse_isRefusedUntilItIsClosed() throws Exception {
    Path path = temporary.resolve("a.pool");
    PoolFile.create(path, MIB);
    try (PoolFile memory = PoolFile.open(path)) {
      assertThat(memory.size()).isEqualTo(MIB);
      assertThatThrownBy(() -> PoolFile.open(path))
          .isInstanceOf(PoolException.class)
          .hasMessageContaining("in use by another mount");
    }
    PoolFile.open(path).close();
  }

  @Test
  void open_whatCannotBeMapped_isRefused() throws Exception {
    Path empty = Files.createFile(temporary.resolve("empty"));
    assertThatThrownBy(() -> PoolFile.open(empty))
        .isInstanceOf(PoolException.class)
        .hasMessageContaining("too few");
    assertThatThrownBy(() -> PoolFile.open(Path.of("/dev/null")))
        .isInstanceOf(PoolException.class)
        .hasMessageContaining("not a dax device");
    assertThatThrownBy(() -> PoolFile.open(temporary.resolve("none")))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("ENOENT");
  }

  @Test
  void writeBack_anyRange_keepsWhatIsThere() {
    assumeTrue(CacheLines.obstacle() == null, CacheLines.obstacle());
    ByteBuffer bytes = ByteBuffer.allocateDirect(4096);
    bytes.putLong(100, 5);
    long address = jnr.ffi.Pointer.wrap(Posix.RUNTIME, bytes).address();
    CacheLines.writeBack(address + 100, 8);
    CacheLines.writeBack(address, 4096);
    assertThat(bytes.getLong(100)).isEqualTo(5);
  }
}
