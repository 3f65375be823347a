package io.pmfs.benchmarks;

import io.pmfs.compression.CodecException;
import io.pmfs.compression.ZstdCodec;
import java.nio.ByteBuffer;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;
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
 * Measures the cost of a frame size: to read a whole file, and to read 4 KiB somewhere in it.
 * Checksums are verified as for a compressed copy. The result determines the size of frames.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(2)
public class FrameBenchmark {
  private static final int CONTENT_BYTES = 32 << 20;

  @Param({"64", "128", "256", "512", "1024"})
  int frameKib;

  /** The incompressible part of the content: the random bytes in each run of 64. */
  @Param({"8", "32"})
  int randomBytes;

  private final SplittableRandom random = new SplittableRandom(1);
  private ZstdCodec codec;
  private ByteBuffer[] frames;
  private ByteBuffer target;

  @Setup(Level.Trial)
  public void compress() {
    codec = new ZstdCodec(3);
    int size = frameKib << 10;
    ByteBuffer content = ByteBuffer.allocateDirect(CONTENT_BYTES);
    for (int at = 0; at < CONTENT_BYTES; at++) {
      content.put((byte) (at % 64 < randomBytes ? random.nextInt(256) : at / 64 % 7));
    }
    frames = new ByteBuffer[CONTENT_BYTES / size];
    target = ByteBuffer.allocateDirect(size);
    for (int frame = 0; frame < frames.length; frame++) {
      ByteBuffer compressed = ByteBuffer.allocateDirect(codec.maxCompressedSize(size));
      codec.compress(content.slice(frame * size, size), compressed);
      frames[frame] = compressed.flip();
    }
  }

  @TearDown(Level.Trial)
  public void close() {
    codec.close();
  }

  private long decompress(int frame) throws CodecException {
    codec.decompress(frames[frame].duplicate(), target.clear());
    CRC32C crc = new CRC32C();
    crc.update(target.flip());
    return crc.getValue();
  }

  @Benchmark
  public long wholeFile() throws CodecException {
    long checksums = 0;
    for (int frame = 0; frame < frames.length; frame++) {
      checksums += decompress(frame);
    }
    return checksums;
  }

  @Benchmark
  public long randomRead() throws CodecException {
    return decompress(random.nextInt(frames.length));
  }
}
