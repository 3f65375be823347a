package io.pmfs.tier;

import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/**
 * A tier that could not be opened when a daemon took over a mount: it has failed from the start.
 */
public final class MissingTier implements Tier {
  private final String name;
  private final String kind;
  private final String path;
  private final String reason;

  public MissingTier(String name, String kind, String path, String reason) {
    this.name = name;
    this.kind = kind;
    this.path = path;
    this.reason = reason;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public @Nullable CopyReader open(long number, @Nullable Extent extent) {
    return null;
  }

  @Override
  public @Nullable CopyWriter create(long number, long sizeBytes) {
    return null;
  }

  @Override
  public boolean has(long number, @Nullable Extent extent, long sizeBytes) throws IOException {
    throw new IOException(reason);
  }

  @Override
  public void remove(long number, @Nullable Extent extent, long sizeBytes) {}

  @Override
  public boolean couldHold(long sizeBytes) {
    return false;
  }

  @Override
  public void fail(String again) {}

  @Override
  public boolean hasFailed() {
    return true;
  }

  /** A failed tier is not compared. */
  @Override
  public Census census() {
    return new NothingToCount();
  }

  @Override
  public TierStatus status() {
    return new TierStatus(name, kind, path, TierStatus.State.FAILED, reason, null, 0, 0, 0);
  }

  @Override
  public void close() {}

  private final class NothingToCount implements Census {
    @Override
    public void forEachFile(LongPredicate visitor) throws IOException {
      throw new IOException(reason);
    }

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
