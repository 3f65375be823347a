package io.pmfs.shards;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceFile;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Keeps shards open, so that reading a million members opens each shard only once. An unused shard
 * stays open until another one needs its place. When a shard is opened and, while in use, once a
 * second, this checks that it has not changed since it was indexed.
 */
final class OpenShards implements AutoCloseable {
  private static final long CHECKED_FOR_NANOS = 1_000_000_000;

  private final ShardFiles files;
  private final int capacity;
  private final LongSupplier nanoTime;

  /** Least recently used first. GUARDED_BY(this) */
  private final Map<Integer, OpenShard> shards = new LinkedHashMap<>(16, 0.75f, true);

  /**
   * Keeps shards open.
   *
   * @param capacity how many unused shards stay open
   * @param nanoTime a monotonic clock
   */
  OpenShards(ShardFiles files, int capacity, LongSupplier nanoTime) {
    this.files = files;
    this.capacity = capacity;
    this.nanoTime = nanoTime;
  }

  /** The open shard; call {@link OpenShard#release} when done. */
  OpenShard acquire(Shard shard) throws FsException {
    OpenShard open;
    synchronized (this) {
      open = shards.computeIfAbsent(shard.number(), number -> new OpenShard(shard));
      open.users++;
    }
    try {
      open.ready();
      return open;
    } catch (Throwable e) {
      open.release();
      throw e;
    }
  }

  private synchronized void released(OpenShard shard) {
    shard.users--;
    int unused = 0;
    for (OpenShard open : shards.values()) {
      unused += open.users == 0 ? 1 : 0;
    }
    Iterator<OpenShard> oldest = shards.values().iterator();
    while (unused > capacity && oldest.hasNext()) {
      OpenShard open = oldest.next();
      if (open.users == 0) {
        oldest.remove();
        open.closeFile();
        unused--;
      }
    }
  }

  @Override
  public synchronized void close() {
    shards.values().forEach(OpenShard::closeFile);
    shards.clear();
  }

  static FsException changed(Shard shard) {
    return new FsException(
        Errno.ESTALE, shard.name() + " changed since it was indexed; unmount, and mount it again");
  }

  final class OpenShard {
    private final Shard shard;
    private int users; // GUARDED_BY(OpenShards.this)
    private @Nullable SourceFile file; // GUARDED_BY(this)
    private long checkedAt; // GUARDED_BY(this)

    private OpenShard(Shard shard) {
      this.shard = shard;
    }

    private synchronized void ready() throws FsException {
      if (file == null) {
        file = files.openIndexed(shard);
        checkedAt = nanoTime.getAsLong() - CHECKED_FOR_NANOS;
      }
      if (nanoTime.getAsLong() - checkedAt >= CHECKED_FOR_NANOS) {
        check(file);
        checkedAt = nanoTime.getAsLong();
      }
    }

    /** The file; the caller must not close it. */
    synchronized SourceFile file() {
      SourceFile open = file;
      if (open == null) {
        throw new IllegalStateException(shard.name() + " is closed");
      }
      return open;
    }

    /** Throws if the file is not the version that was indexed. */
    void check(SourceFile open) throws FsException {
      if (!shard.isVersion(open.status().attributes())) {
        throw changed(shard);
      }
    }

    void release() {
      released(this);
    }

    private synchronized void closeFile() {
      if (file != null) {
        file.close();
        file = null;
      }
    }
  }
}
