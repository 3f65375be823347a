package io.pmfs.shards;

import io.pmfs.compression.CodecException;
import io.pmfs.compression.SeekTable;
import io.pmfs.memory.BufferPool;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import java.nio.ByteBuffer;

/** A shard in the zstd seekable format, read as the decompressed tar file. */
final class CompressedShard implements SourceFile {
  private final Shard shard;
  private final SourceFile file;
  private final SeekTable table;
  private final FrameCache frames;

  private CompressedShard(Shard shard, SourceFile file, SeekTable table, FrameCache frames) {
    this.shard = shard;
    this.file = file;
    this.table = table;
    this.frames = frames;
  }

  /** Reads the table of an open file and takes ownership of the file. */
  static CompressedShard open(Shard shard, SourceFile file, FrameCache frames, BufferPool scratch)
      throws FsException, ShardException {
    try (BufferPool.Loan loan = scratch.take(SeekTable.READ_BYTES)) {
      SeekTable table =
          SeekTable.load(
              shard.size(),
              loan.buffer(),
              (offset, destination) -> readFully(shard, file, offset, destination));
      for (int frame = 0; frame < table.frameCount(); frame++) {
        if (Math.max(table.contentSize(frame), table.compressedSize(frame))
            > FrameCache.MAX_FRAME_BYTES) {
          throw new ShardException(
              "%s: has frames above %d MiB, which is too large to read members from it; unpack"
                      .formatted(shard.name(), FrameCache.MAX_FRAME_BYTES >> 20)
                  + " it, or repack it with pmfs pack");
        }
      }
      return new CompressedShard(shard, file, table, frames);
    } catch (CodecException e) {
      throw new ShardException(
          "%s: can only be read from its beginning: %s; unpack it, or repack it with pmfs pack"
              .formatted(shard.name(), e.getMessage()),
          e);
    }
  }

  int number() {
    return shard.number();
  }

  SeekTable table() {
    return table;
  }

  long contentSize() {
    return table.contentSize();
  }

  /** Fills a buffer with the compressed bytes of a frame. */
  void readFrame(int frame, ByteBuffer destination) throws FsException {
    readFully(shard, file, table.compressedOffset(frame), destination);
  }

  private static void readFully(Shard shard, SourceFile file, long offset, ByteBuffer destination)
      throws FsException {
    int wanted = destination.remaining();
    if (file.read(offset, destination) < wanted) {
      throw OpenShards.changed(shard);
    }
  }

  @Override
  public int read(long offset, ByteBuffer destination) throws FsException {
    int first = destination.position();
    while (destination.hasRemaining()) {
      long at = offset + destination.position() - first;
      if (at >= table.contentSize()) {
        break;
      }
      int frame = table.frameOf(at);
      try {
        frames.copy(this, frame, (int) (at - table.contentOffset(frame)), destination);
      } catch (CodecException e) {
        throw new FsException(
            Errno.EIO, shard.name() + ": frame " + frame + " is damaged: " + e.getMessage(), e);
      }
    }
    return destination.position() - first;
  }

  /** Reports no holes; members have their own maps of holes. */
  @Override
  public long seekData(long offset) {
    return offset;
  }

  @Override
  public long seekHole(long offset) {
    return table.contentSize();
  }

  @Override
  public SourceStatus status() throws FsException {
    return file.status();
  }

  @Override
  public void close() {
    frames.remove(this);
    file.close();
  }
}
