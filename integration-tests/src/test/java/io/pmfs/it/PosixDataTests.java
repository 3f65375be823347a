package io.pmfs.it;

import static io.pmfs.it.Posix.O_RDONLY;
import static io.pmfs.it.Posix.outcome;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** What reads of regular files give, by every system call that reads. */
interface PosixDataTests extends PosixView {
  private Path file(String name) {
    return Path.of(at("data/" + name));
  }

  @Test
  default void read_everyFileInOddSizes_givesItsBytes() {
    for (String name : PosixTree.FILES.keySet()) {
      byte[] expected = PosixTree.content(name);
      for (int size : new int[] {1 << 20, 65_537, 4095, 509}) {
        assertThat(readInSteps(at("data/" + name), size, expected.length))
            .as("%s in steps of %d", name, size)
            .matches(got -> Arrays.equals(got, expected));
      }
    }
  }

  private static byte[] readInSteps(String path, int step, int limit) {
    byte[] all = new byte[limit + 1];
    byte[] buffer = new byte[step];
    long total =
        Posix.withFile(
            path,
            O_RDONLY,
            fd -> {
              int at = 0;
              long got = Posix.check(Posix.result(Posix.LIBC.read(fd, buffer, step)));
              while (got > 0 && at + got <= all.length) {
                System.arraycopy(buffer, 0, all, at, (int) got);
                at += (int) got;
                got = Posix.check(Posix.result(Posix.LIBC.read(fd, buffer, step)));
              }
              return at;
            });
    return Arrays.copyOf(all, (int) Posix.check(total));
  }

  @Test
  default void read_ofOneByteAtATime_givesTheBytes() {
    byte[] expected = PosixTree.content("page-more");
    assertThat(readInSteps(at("data/page-more"), 1, expected.length)).isEqualTo(expected);
  }

  @Test
  default void pread_atRandomOffsetsAndSizes_givesTheRange() {
    long seed = System.nanoTime();
    SplittableRandom random = new SplittableRandom(seed);
    for (String name : PosixTree.FILES.keySet()) {
      byte[] expected = PosixTree.content(name);
      for (int i = 0; i < 60; i++) {
        int offset = random.nextInt(expected.length + 5000);
        int size = 1 + random.nextInt(i % 3 == 0 ? 300_000 : 5000);
        int from = Math.min(offset, expected.length);
        int to = Math.min(offset + size, expected.length);
        assertThat(Posix.pread(at("data/" + name), size, offset))
            .as("seed %d, %s: %d bytes at %d", seed, name, size, offset)
            .matches(got -> Arrays.equals(got, Arrays.copyOfRange(expected, from, to)));
      }
    }
  }

  @Test
  default void pread_aroundEachBoundary_givesTheRange() {
    byte[] expected = PosixTree.content("odd");
    for (int boundary : new int[] {0, 4096, 65_536, 131_072, 262_144, 1_000_003}) {
      for (int offset = Math.max(0, boundary - 2); offset <= boundary + 2; offset++) {
        for (int size : new int[] {1, 2, 4, 4096, 4097}) {
          int from = Math.min(offset, expected.length);
          int to = Math.min(offset + size, expected.length);
          assertThat(Posix.pread(at("data/odd"), size, offset))
              .as("%d bytes at %d", size, offset)
              .isEqualTo(Arrays.copyOfRange(expected, from, to));
        }
      }
    }
  }

  @Test
  default void pread_atOrPastTheEnd_givesNothing() {
    for (String name : PosixTree.FILES.keySet()) {
      long size = PosixTree.content(name).length;
      for (long offset :
          new long[] {size, size + 1, size + 4096, 1L << 40, Long.MAX_VALUE - 4096}) {
        assertThat(Posix.pread(at("data/" + name), 100, offset))
            .as(name + " at " + offset)
            .isEmpty();
      }
    }
  }

  @Test
  default void pread_atNegativeOffset_failsWithEinval() {
    assertThat(
            outcome(
                Posix.withFile(
                    at("data/odd"), O_RDONLY, fd -> Posix.pread(fd, new byte[1], 1, -1))))
        .isEqualTo("EINVAL");
  }

  @Test
  default void readv_overBuffersOfOddSizes_fillsThemInOrder() throws IOException {
    byte[] expected = PosixTree.content("odd");
    try (FileChannel channel = FileChannel.open(file("odd"))) {
      channel.position(777);
      ByteBuffer[] buffers = {
        ByteBuffer.allocateDirect(1), ByteBuffer.allocateDirect(4097), ByteBuffer.allocateDirect(13)
      };
      long total = 0;
      while (buffers[2].hasRemaining()) {
        total += channel.read(buffers);
      }
      assertThat(total).isEqualTo(4111);
      int at = 777;
      for (ByteBuffer buffer : buffers) {
        byte[] got = new byte[buffer.flip().remaining()];
        buffer.get(got);
        assertThat(got).isEqualTo(Arrays.copyOfRange(expected, at, at + got.length));
        at += got.length;
      }
    }
  }

  @Test
  default void mmap_ofEachWholeFile_givesItsBytes() {
    for (String name : PosixTree.FILES.keySet()) {
      byte[] expected = PosixTree.content(name);
      if (expected.length > 0) {
        assertThat(Posix.mmap(at("data/" + name), expected.length, 0))
            .as(name)
            .matches(got -> Arrays.equals(got, expected));
      }
    }
  }

  @Test
  default void mmap_ofAPart_givesThatPart() {
    byte[] expected = PosixTree.content("large");
    for (int offset : new int[] {65_536, 131_072, 1 << 20}) {
      assertThat(Posix.mmap(at("data/large"), 200_001, offset))
          .matches(
              got -> Arrays.equals(got, Arrays.copyOfRange(expected, offset, offset + 200_001)));
    }
  }

  @Test
  default void mmap_ofTheLastPage_isZeroAfterTheEnd() {
    byte[] expected = Arrays.copyOf(PosixTree.content("page-more"), 8192);
    assertThat(Posix.mmap(at("data/page-more"), 8192, 0)).isEqualTo(expected);
  }

  @Test
  default void read_ofHole_givesZerosAroundTheData() {
    byte[] expected = PosixTree.holeContent();
    assertThat(readInSteps(at("data/hole"), 100_000, expected.length))
        .matches(got -> Arrays.equals(got, expected));
  }

  @Test
  default void pread_ofSparseFileBeyondFourGib_givesDataAndZeros() {
    for (long at : PosixTree.sorted(PosixTree.SPARSE_DATA)) {
      for (long offset : new long[] {Math.max(0, at - 100), at, at + 1}) {
        assertThat(Posix.pread(at("data/sparse"), 140_000, offset))
            .as("sparse at %d", offset)
            .matches(got -> Arrays.equals(got, PosixTree.sparseContent(offset, 140_000)));
      }
    }
    assertThat(Posix.pread(at("data/sparse"), 10, PosixTree.SPARSE_SIZE)).isEmpty();
  }

  @Test
  default void mmap_ofSparseFileBeyondFourGib_givesTheData() {
    long offset = (4L << 30) - 65_536;
    assertThat(Posix.mmap(at("data/sparse"), 80_000, offset))
        .matches(got -> Arrays.equals(got, PosixTree.sparseContent(offset, 80_000)));
  }

  @Test
  default void lseek_fromTheEnd_knowsTheSize() {
    assertThat(Posix.lseek(at("data/sparse"), 0, Posix.SEEK_END)).isEqualTo(PosixTree.SPARSE_SIZE);
    assertThat(Posix.lseek(at("data/odd"), -3, Posix.SEEK_END)).isEqualTo(1_000_000);
  }

  /** Any answer is allowed that calls no data a hole; a file may count as one run of data. */
  @Test
  default void lseek_forDataAndHoles_hidesNoData() {
    for (long at : PosixTree.sorted(PosixTree.SPARSE_DATA)) {
      assertThat(Posix.lseek(at("data/sparse"), at, Posix.SEEK_DATA)).isEqualTo(at);
      assertThat(Posix.lseek(at("data/sparse"), at, Posix.SEEK_HOLE))
          .isBetween(at + PosixTree.SPARSE_DATA.getOrDefault(at, 0), PosixTree.SPARSE_SIZE);
    }
    for (int whence : new int[] {Posix.SEEK_DATA, Posix.SEEK_HOLE}) {
      assertThat(outcome(Posix.lseek(at("data/sparse"), PosixTree.SPARSE_SIZE + 1, whence)))
          .isEqualTo("ENXIO");
    }
  }

  @Test
  default void read_ofDirectory_failsWithEisdir() {
    assertThat(outcome(Posix.readByte(at("data")))).isEqualTo("EISDIR");
  }

  @Test
  default void open_nonsense_failsWithTheKernelsErrno() {
    assertThat(outcome(Posix.open(at("data/missing"), O_RDONLY))).isEqualTo("ENOENT");
    assertThat(outcome(Posix.open(at("missing/file"), O_RDONLY))).isEqualTo("ENOENT");
    assertThat(outcome(Posix.open(at("data/odd/file"), O_RDONLY))).isEqualTo("ENOTDIR");
    assertThat(outcome(Posix.open(at("data/odd"), Posix.O_DIRECTORY))).isEqualTo("ENOTDIR");
    assertThat(outcome(Posix.open(at("data/" + "x".repeat(256)), O_RDONLY)))
        .isEqualTo("ENAMETOOLONG");
    assertThat(outcome(Posix.open(at("types/loop"), O_RDONLY))).isEqualTo("ELOOP");
    assertThat(outcome(Posix.open(at("types/link"), Posix.O_NOFOLLOW))).isEqualTo("ELOOP");
    assertThat(outcome(Posix.open(at("types/dangling"), O_RDONLY))).isEqualTo("ENOENT");
    // Asked again: the kernel may remember that a name is not there.
    assertThat(outcome(Posix.open(at("data/missing"), O_RDONLY))).isEqualTo("ENOENT");
  }

  @Test
  default void dd_withOddBlockSizes_copiesTheFile() throws IOException {
    byte[] expected = PosixTree.content("odd");
    for (String blocks : new String[] {"bs=1237", "ibs=77777 obs=333", "bs=1M iflag=fullblock"}) {
      Path out = java.nio.file.Files.createTempFile("pmfs-it", ".dd");
      try {
        Command.run(
                "sh", "-c", "dd if='" + at("data/odd") + "' of='" + out + "' status=none " + blocks)
            .expect(0);
        assertThat(Dataset.read(out)).as(blocks).matches(got -> Arrays.equals(got, expected));
      } finally {
        java.nio.file.Files.delete(out);
      }
    }
  }

  @Test
  default void dd_fromAnOddOffsetBeyondFourGib_copiesTheRange() throws IOException {
    long skip = (4L << 30) + 999_999;
    Path out = java.nio.file.Files.createTempFile("pmfs-it", ".dd");
    try {
      Command.run(
              "dd",
              "if=" + at("data/sparse"),
              "of=" + out,
              "bs=77777",
              "count=2",
              "iflag=skip_bytes",
              "skip=" + skip)
          .expect(0);
      assertThat(Dataset.read(out))
          .matches(got -> Arrays.equals(got, PosixTree.sparseContent(skip, 2 * 77_777)));
    } finally {
      java.nio.file.Files.delete(out);
    }
  }
}
