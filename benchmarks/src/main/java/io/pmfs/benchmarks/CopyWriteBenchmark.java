package io.pmfs.benchmarks;

import io.pmfs.fuse.system.LinuxDaxFiles;
import io.pmfs.tier.DaxFiles;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.TimeUnit;
import jdk.nio.mapmode.ExtendedMapMode;
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
import sun.misc.Unsafe;

/**
 * Compares writing a copy to a disk by pwrite and fdatasync, and through a mapping and force(). On
 * persistent memory the mapping is synchronous; elsewhere an ordinary one is used, whose force() is
 * an msync(2).
 *
 * <p>In {@code scripts/dax-vm --count-instructions} a nanosecond is an instruction.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(
    value = 2,
    jvmArgsAppend = {
      "--add-modules=jdk.nio.mapmode",
      "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
      "--add-opens=java.base/java.io=ALL-UNNAMED"
    })
public class CopyWriteBenchmark {
  private static final int BLOCK_BYTES = 256 * 1024;

  /** From this size on, room is allocated before it is written, as for copies on DAX. */
  private static final int PREALLOCATED_BYTES = 2 << 20;

  @Param({"/dev/shm", "/var/tmp"})
  String place;

  @Param({"110000", "4194304", "16777216"})
  int size;

  private final DaxFiles dax = new LinuxDaxFiles();
  private final ByteBuffer block = ByteBuffer.allocateDirect(BLOCK_BYTES);
  private Path directory;
  private MapMode mode;
  private Unsafe unsafe;

  @Setup(Level.Trial)
  public void find() throws IOException, ReflectiveOperationException {
    directory = Files.createTempDirectory(Path.of(place), "pmfs-benchmark");
    var field = Unsafe.class.getDeclaredField("theUnsafe");
    field.setAccessible(true);
    unsafe = (Unsafe) field.get(null);
    mode = ExtendedMapMode.READ_WRITE_SYNC;
    try (FileChannel file = create()) {
      unsafe.invokeCleaner(file.map(mode, 0, size));
    } catch (IOException | UnsupportedOperationException e) {
      mode = MapMode.READ_WRITE;
    }
    delete();
    System.out.printf("%s: %s, DAX: %s%n", place, mode, isDax());
  }

  private Boolean isDax() throws IOException {
    try (FileChannel file = create()) {
      return dax.isDirect(file);
    } finally {
      delete();
    }
  }

  @TearDown(Level.Trial)
  public void remove() throws IOException {
    Files.delete(directory);
  }

  private FileChannel create() throws IOException {
    return FileChannel.open(
        directory.resolve("copy"),
        StandardOpenOption.CREATE_NEW,
        StandardOpenOption.READ,
        StandardOpenOption.WRITE);
  }

  private void delete() throws IOException {
    Files.delete(directory.resolve("copy"));
  }

  private void allocate(FileChannel file) throws IOException {
    if (size >= PREALLOCATED_BYTES) {
      dax.allocate(file, size);
    }
  }

  @Benchmark
  public void pwriteAndFdatasync() throws IOException {
    try (FileChannel file = create()) {
      allocate(file);
      for (int at = 0; at < size; at += BLOCK_BYTES) {
        block.clear().limit(Math.min(BLOCK_BYTES, size - at));
        while (block.hasRemaining()) {
          file.write(block, at + block.position());
        }
      }
      file.force(false);
    }
    delete();
  }

  @Benchmark
  public void mappedAndForced() throws IOException {
    try (FileChannel file = create()) {
      allocate(file);
      MappedByteBuffer memory = file.map(mode, 0, size);
      for (int at = 0; at < size; at += BLOCK_BYTES) {
        memory.put(at, block, 0, Math.min(BLOCK_BYTES, size - at));
      }
      memory.force();
      unsafe.invokeCleaner(memory);
    }
    delete();
  }
}
