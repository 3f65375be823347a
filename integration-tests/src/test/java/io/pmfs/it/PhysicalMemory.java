package io.pmfs.it;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Where bytes are in the machine's memory; for root, on x86-64. */
final class PhysicalMemory {
  private static final int PAGE = 4096;
  private static final int CACHESTAT = 451;

  private PhysicalMemory() {}

  /** Page frames, from the first to the last. */
  record Range(long first, long last) {
    boolean contains(long frame) {
      return first <= frame && frame <= last;
    }
  }

  /** What /proc/iomem calls persistent. */
  static List<Range> persistent() {
    Pattern line = Pattern.compile("([0-9a-f]+)-([0-9a-f]+) : (Persistent Memory|namespace).*");
    List<Range> ranges = new ArrayList<>();
    for (String text : lines("/proc/iomem")) {
      Matcher matcher = line.matcher(text.strip());
      if (matcher.matches()) {
        ranges.add(
            new Range(
                Long.parseLong(matcher.group(1), 16) / PAGE,
                Long.parseLong(matcher.group(2), 16) / PAGE));
      }
    }
    return ranges;
  }

  /** The page cache of the whole machine, files in memory file systems included. */
  static long pageCacheBytes() {
    return lines("/proc/meminfo").stream()
        .filter(line -> line.startsWith("Cached:"))
        .map(line -> line.replaceAll("\\D", ""))
        .mapToLong(kibibytes -> Long.parseLong(kibibytes) * 1024)
        .sum();
  }

  /** Maps a file, reads a byte at each of the places, and says in which page frames they are. */
  static List<Long> pagesOf(String path, int size, long[] places) {
    try (Mapping mapping = new Mapping(path, size);
        RandomAccessFile pagemap = new RandomAccessFile("/proc/self/pagemap", "r")) {
      List<Long> frames = new ArrayList<>();
      for (long place : places) {
        mapping.touch(place);
        frames.add(frame(pagemap, mapping.address() + place));
      }
      return frames;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** An entry of 64 bits for each page: bit 63 says present, 54 to 0 are the frame; proc(5). */
  private static long frame(RandomAccessFile pagemap, long address) throws IOException {
    byte[] bytes = new byte[8];
    pagemap.seek(address / PAGE * 8);
    pagemap.readFully(bytes);
    long entry = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getLong();
    long frame = entry & ((1L << 55) - 1);
    if (entry >= 0 || frame == 0) {
      throw new AssertionError("no page at " + Long.toHexString(address) + ", or not root");
    }
    return frame;
  }

  /** Pages of one file that are in the page cache: cachestat(2), Linux 6.5. */
  static long cachedPages(String path) {
    long[] wholeFile = {0, 0};
    long[] statistics = new long[5];
    Posix.check(
        Posix.withFile(
            path,
            Posix.O_RDONLY,
            fd -> Posix.result(Posix.LIBC.syscall(CACHESTAT, fd, wholeFile, statistics, 0))));
    return statistics[0];
  }

  private static List<String> lines(String file) {
    try {
      return Files.readAllLines(Path.of(file));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
