package io.pmfs.shards;

import io.pmfs.memory.DirectMemory;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceFile;

/** Opens shards of a store as tar files, compressed or not. */
final class ShardFiles implements AutoCloseable {
  private final BackingStore store;
  private final DirectMemory memory;
  private final FrameCache frames;

  /**
   * Opens shards of a store.
   *
   * @param memory for frames of compressed ones
   */
  ShardFiles(BackingStore store, DirectMemory memory) {
    this.store = store;
    this.memory = memory;
    this.frames = new FrameCache(memory);
  }

  /** An open tar file, and its size. */
  record Opened(SourceFile file, long size) {}

  Opened open(Shard shard) throws FsException, ShardException {
    SourceFile file = store.open(shard.name());
    if (!ShardName.isCompressed(shard.name())) {
      return new Opened(file, shard.size());
    }
    try {
      // The table is at the end: in another version, the offset would be wrong.
      if (!shard.isVersion(file.status().attributes())) {
        throw OpenShards.changed(shard);
      }
      CompressedShard opened = CompressedShard.open(shard, file, frames, memory.scratch());
      return new Opened(opened, opened.contentSize());
    } catch (Throwable e) {
      file.close();
      throw e;
    }
  }

  /** Opens a shard that was indexed, and so is valid. */
  SourceFile openIndexed(Shard shard) throws FsException {
    try {
      return open(shard).file();
    } catch (ShardException e) {
      throw new FsException(Errno.EIO, String.valueOf(e.getMessage()), e);
    }
  }

  @Override
  public void close() {
    frames.close();
  }
}
