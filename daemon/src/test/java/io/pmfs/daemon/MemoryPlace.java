package io.pmfs.daemon;

import io.pmfs.machine.MountFailure;
import io.pmfs.memory.ReadResult;
import io.pmfs.metadata.Extent;
import io.pmfs.places.Capacity;
import io.pmfs.places.TierPlace;
import io.pmfs.places.TierSpec;
import io.pmfs.tier.CopyReader;
import io.pmfs.tier.CopyWriter;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierStatus;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/** A tier in the process's memory, whose copies end with the process. */
final class MemoryPlace implements TierPlace {
  private final TierSpec spec;

  MemoryPlace(TierSpec spec) {
    this.spec = spec;
  }

  @Override
  public void check(Capacity keepFree, @Nullable String user) throws MountFailure {
    if (spec.capacity().on(0) == 0) {
      throw MountFailure.usage(spec.path(), spec.what(), "has no size", "give it one");
    }
  }

  @Override
  public Examined examine(Capacity keepFree) throws MountFailure {
    check(keepFree, null);
    return new Examined(true, spec.path() + ": memory");
  }

  @Override
  public Tier open(Opening opening) {
    return new MemoryTier(spec);
  }

  @Override
  public boolean purge(String dataset) {
    return true;
  }

  @Override
  public TierSpec apart(String name) {
    return spec.at(spec.path().resolve(name));
  }

  /** Copies in direct buffers. */
  private static final class MemoryTier implements Tier {
    private final TierSpec spec;
    private final Map<Long, ByteBuffer> copies = new ConcurrentHashMap<>();
    private volatile @Nullable String reason;

    MemoryTier(TierSpec spec) {
      this.spec = spec;
    }

    @Override
    public String name() {
      return spec.name();
    }

    @Override
    public @Nullable CopyReader open(long number, @Nullable Extent extent) {
      ByteBuffer copy = copies.get(number);
      return copy == null || hasFailed() ? null : new MemoryReader(copy);
    }

    @Override
    public @Nullable CopyWriter create(long number, long sizeBytes) {
      return couldHold(used() + sizeBytes)
          ? new MemoryWriter(this, number, ByteBuffer.allocateDirect(Math.toIntExact(sizeBytes)))
          : null;
    }

    private long used() {
      return copies.values().stream().mapToLong(ByteBuffer::capacity).sum();
    }

    @Override
    public boolean has(long number, @Nullable Extent extent, long sizeBytes) {
      ByteBuffer copy = copies.get(number);
      return copy != null && copy.limit() == sizeBytes;
    }

    @Override
    public void remove(long number, @Nullable Extent extent, long sizeBytes) {
      copies.remove(number);
    }

    @Override
    public boolean couldHold(long sizeBytes) {
      return !hasFailed() && sizeBytes <= spec.capacity().on(0);
    }

    @Override
    public void fail(String why) {
      reason = why;
    }

    @Override
    public boolean hasFailed() {
      return reason != null;
    }

    @Override
    public Census census() {
      return new NothingToCount();
    }

    @Override
    public TierStatus status() {
      return new TierStatus(
          name(),
          spec.kind().word(),
          spec.path().toString(),
          hasFailed() ? TierStatus.State.FAILED : TierStatus.State.ON,
          reason,
          null,
          spec.capacity().on(0),
          used(),
          copies.size());
    }

    @Override
    public void close() {
      copies.clear();
    }
  }

  private record MemoryReader(ByteBuffer copy) implements CopyReader {
    @Override
    public long size() {
      return copy.limit();
    }

    @Override
    public ReadResult read(long offset, int size) {
      return new ReadResult.Bytes(copy.slice(Math.toIntExact(offset), size));
    }

    @Override
    public void close() {}
  }

  private record MemoryWriter(MemoryTier tier, long number, ByteBuffer copy) implements CopyWriter {
    @Override
    public void write(long offset, ByteBuffer source) {
      copy.duplicate().position(Math.toIntExact(offset)).put(source);
    }

    @Override
    public void append(ByteBuffer source) {
      write(0, source);
    }

    @Override
    public ReadResult read(long offset, int size) {
      return new MemoryReader(copy).read(offset, size);
    }

    @Override
    public void shrink(long sizeBytes) {
      copy.limit(Math.toIntExact(sizeBytes));
    }

    @Override
    public @Nullable Extent commit() throws IOException {
      tier.copies.put(number, copy);
      return null;
    }

    @Override
    public void close() {}
  }

  private static final class NothingToCount implements Tier.Census {
    @Override
    public void forEachFile(LongPredicate visitor) {}

    @Override
    public void discard(long number) {}

    @Override
    public void add(@Nullable Extent extent, long sizeBytes) {}

    @Override
    public void subtract(@Nullable Extent extent, long sizeBytes) {}

    @Override
    public void take() {}
  }
}
