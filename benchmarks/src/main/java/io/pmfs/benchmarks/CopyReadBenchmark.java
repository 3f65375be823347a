package io.pmfs.benchmarks;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Compares reading a copy's bytes into a reply through a mapping and by pread, in page cache or
 * tmpfs, as for a copy in a warm tier. The result decides what a directory tier returns.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(2)
public class CopyReadBenchmark {
  private static final int SMALL_FILES = 1000;
  private static final int SMALL_BYTES = 110_000;
  private static final int LARGE_BYTES = 1 << 30;
  private static final int REQUEST_BYTES = 128 * 1024;

  @Param({"/dev/shm", "/var/tmp"})
  String place;

  private final SplittableRandom random = new SplittableRandom(1);
  private final ByteBuffer reply = ByteBuffer.allocateDirect(REQUEST_BYTES);
  private Path directory;
  private FileChannel large;
  private MappedByteBuffer mapping;

  @Setup(Level.Trial)
  public void makeFiles() throws IOException {
    directory = Files.createTempDirectory(Path.of(place), "pmfs-benchmark");
    byte[] content = new byte[SMALL_BYTES];
    for (int i = 0; i < SMALL_FILES; i++) {
      Files.write(small(i), content);
    }
    large =
        FileChannel.open(
            directory.resolve("large"),
            StandardOpenOption.CREATE_NEW,
            StandardOpenOption.READ,
            StandardOpenOption.WRITE);
    ByteBuffer block = ByteBuffer.allocateDirect(1 << 20);
    for (long at = 0; at < LARGE_BYTES; at += block.capacity()) {
      large.write(block.clear(), at);
    }
    mapping = large.map(FileChannel.MapMode.READ_ONLY, 0, LARGE_BYTES);
    mapping.load();
  }

  @TearDown(Level.Trial)
  public void removeFiles() throws IOException {
    large.close();
    try (Stream<Path> files = Files.walk(directory)) {
      files
          .sorted(Comparator.reverseOrder())
          .forEach(
              file -> {
                try {
                  Files.delete(file);
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
              });
    }
  }

  private Path small(int i) {
    return directory.resolve(Integer.toString(i));
  }

  private long randomRequest() {
    return (long) random.nextInt(LARGE_BYTES / REQUEST_BYTES) * REQUEST_BYTES;
  }

  @Benchmark
  public int smallFile_openPread() throws IOException {
    try (FileChannel file = FileChannel.open(small(random.nextInt(SMALL_FILES)))) {
      return file.read(reply.clear(), 0);
    }
  }

  @Benchmark
  public ByteBuffer smallFile_openMap() throws IOException {
    try (FileChannel file = FileChannel.open(small(random.nextInt(SMALL_FILES)))) {
      return reply.clear().put(file.map(FileChannel.MapMode.READ_ONLY, 0, file.size()));
    }
  }

  @Benchmark
  public int largeFile_pread() throws IOException {
    return large.read(reply.clear(), randomRequest());
  }

  @Benchmark
  public ByteBuffer largeFile_mapped() {
    return reply.clear().put(mapping.slice((int) randomRequest(), REQUEST_BYTES));
  }
}
