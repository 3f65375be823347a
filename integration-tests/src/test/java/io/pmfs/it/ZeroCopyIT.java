package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;

/**
 * Whose memory an application sees that maps and reads a file of a mount whose tier is on
 * persistent memory. It is this JVM, by mmap(2) and pread(2), and knows nothing of pmfs; runs in
 * the machine of {@code scripts/dax-vm}.
 */
@Tag("fsdax")
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class ZeroCopyIT {
  private static final int MIB = 1 << 20;
  private static final int SIZE = 256 * MIB;
  private static final Duration PATIENCE = Duration.ofMinutes(10);

  /** Every two mebibytes and a page: some at the beginning of a huge page, others inside. */
  private static final long[] TOUCHED =
      LongStream.range(0, SIZE / (2 * MIB)).map(i -> i * (2L * MIB) + i * 4096).toArray();

  private final Path tier = Path.of(String.valueOf(System.getenv("PMEM_DIR")), "tier");
  private Installation pmfs;
  private Path source;

  @BeforeAll
  void install() throws IOException {
    Machine.requireRoot();
    Machine.requireFuse();
    pmfs = new Installation();
    source = pmfs.directory("source");
    writeFile(source.resolve("file"));
  }

  @AfterAll
  void remove() {
    if (pmfs != null) {
      pmfs.close();
      Command.run("rm", "-rf", "--one-file-system", tier.toString()).expect(0);
    }
  }

  private static void writeFile(Path file) throws IOException {
    byte[] block = new byte[MIB];
    new SplittableRandom(1).nextBytes(block);
    try (var out = Files.newOutputStream(file)) {
      for (int i = 0; i < SIZE / MIB; i++) {
        ByteBuffer.wrap(block).putInt(0, i);
        out.write(block);
      }
    }
  }

  /** What was seen of one mount. */
  private record Seen(
      List<Long> mountPages,
      List<Long> tierPages,
      long cacheGrowth,
      long cachedOfFile,
      long daemonReads) {}

  @Test
  void passthrough_readAndMapped_isTheTiersMemoryAndNothingIsCached() {
    Seen seen = look("passthrough");

    assertThat(seen.daemonReads()).as("bytes that the daemon served").isZero();
    assertThat(seen.mountPages()).as("physical pages").isEqualTo(seen.tierPages());
    assertThat(persistent(seen.mountPages()))
        .as("pages of persistent memory")
        .isEqualTo(seen.mountPages());
    assertThat(seen.cacheGrowth()).as("growth of the page cache").isLessThan(SIZE / 16);
    assertThat(seen.cachedOfFile()).as("cached pages of the file").isZero();
  }

  /** The same with copies in the page cache: or else the test above could not fail. */
  @Test
  void pageCache_readAndMapped_isAnotherMemoryAndAllOfItIsCached() {
    Seen seen = look("page-cache");

    assertThat(seen.mountPages())
        .as("physical pages")
        .hasSize(TOUCHED.length)
        .doesNotContainAnyElementsOf(seen.tierPages());
    assertThat(persistent(seen.mountPages())).as("pages of persistent memory").isEmpty();
    assertThat(seen.cacheGrowth()).as("growth of the page cache").isGreaterThan(SIZE / 16 * 15L);
    assertThat(seen.cachedOfFile()).as("cached pages of the file").isEqualTo(SIZE / 4096);
    assertThat(seen.daemonReads()).as("bytes that the daemon served").isEqualTo(SIZE);
  }

  private static List<Long> persistent(List<Long> pages) {
    List<PhysicalMemory.Range> ranges = PhysicalMemory.persistent();
    return pages.stream()
        .filter(page -> ranges.stream().anyMatch(range -> range.contains(page)))
        .toList();
  }

  private Seen look(String readMode) {
    try (MountedPmfs mount =
        pmfs.mount(PATIENCE, source, "--tier", "pm:" + tier, "--read-mode", readMode)) {
      String file = mount.path("file");
      assertThat(mount.status().text("readMode")).isEqualTo(readMode);
      // Each mount makes its copy: one of an earlier mount would have to be verified first.
      pmfs.run("evict", mount.mountpoint().toString()).expect(0);
      Posix.check(Posix.readByte(file));
      // Before the daemon is asked again and again, which takes processor time from it.
      Await.until("a copy", PATIENCE, () -> copies().size() == 1);
      mount.awaitCopies(1, PATIENCE);
      String copy = copies().get(0).toString();

      Machine.dropCaches();
      long served = mount.status().number("reads.bytes");
      long before = PhysicalMemory.pageCacheBytes();
      readAndCompare(Path.of(file));
      long growth = PhysicalMemory.pageCacheBytes() - before;
      return new Seen(
          PhysicalMemory.pagesOf(file, SIZE, TOUCHED),
          PhysicalMemory.pagesOf(copy, SIZE, TOUCHED),
          growth,
          PhysicalMemory.cachedPages(file),
          mount.status().number("reads.bytes") - served);
    }
  }

  /** Whole ones: others are in a directory of their own. */
  private List<Path> copies() {
    return Installation.files(tier).stream()
        .filter(file -> file.toString().contains("/copies/"))
        .toList();
  }

  private void readAndCompare(Path file) {
    byte[] expected = new byte[MIB];
    new SplittableRandom(1).nextBytes(expected);
    byte[] bytes = new byte[MIB];
    try (FileChannel channel = FileChannel.open(file)) {
      for (int i = 0; i < SIZE / MIB; i++) {
        ByteBuffer.wrap(expected).putInt(0, i);
        ByteBuffer piece = ByteBuffer.wrap(bytes);
        while (piece.hasRemaining() && channel.read(piece) > 0) {}
        assertThat(Arrays.equals(bytes, expected)).as("block %d", i).isTrue();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
