package io.pmfs.tier;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Ordinary files treated as persistent memory. */
final class FakeDaxFiles implements DaxFiles {
  final List<Long> allocated = new ArrayList<>();
  final AtomicInteger mapped = new AtomicInteger();
  boolean mappable = true;
  @Nullable IOException full;

  @Override
  public Boolean isDirect(FileChannel file) {
    return true;
  }

  @Override
  public void allocate(FileChannel file, long sizeBytes) throws IOException {
    if (full != null) {
      throw full;
    }
    allocated.add(sizeBytes);
  }

  @Override
  public @Nullable FileMapping map(FileChannel file, long sizeBytes) {
    if (!mappable) {
      return null;
    }
    mapped.incrementAndGet();
    try {
      ByteBuffer memory = file.map(MapMode.READ_ONLY, 0, sizeBytes);
      return new FileMapping() {
        @Override
        public ByteBuffer range(long offset, int size) {
          return memory.slice(Math.toIntExact(offset), size);
        }

        @Override
        public void close() {
          mapped.decrementAndGet();
        }
      };
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
