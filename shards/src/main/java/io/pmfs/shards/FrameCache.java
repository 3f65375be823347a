package io.pmfs.shards;

import io.pmfs.compression.CodecException;
import io.pmfs.compression.FrameReader;
import io.pmfs.memory.BufferPool;
import io.pmfs.memory.DirectMemory;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.util.stream.Stream;

/**
 * The most recently decompressed frames of compressed shards, within the available memory. Each
 * frame is decompressed only once, even if several threads need it; at most {@value #LOADS} frames
 * are decompressed at a time. Thread-safe.
 */
final class FrameCache implements AutoCloseable {
  /** Far above the frame size of {@code pmfs pack}. */
  static final int MAX_FRAME_BYTES = 8 << 20;

  private static final int LOADS = 8;

  private final FrameReader reader = new FrameReader();
  private final DirectMemory memory;

  /** Held while a frame is loaded; each frame maps to one of the locks. */
  private final Object[] locks = Stream.generate(Object::new).limit(LOADS).toArray();

  FrameCache(DirectMemory memory) {
    this.memory = memory;
  }

  /**
   * Copies bytes of a frame's content.
   *
   * @param offset in the content of the frame
   */
  void copy(CompressedShard shard, int frame, int offset, ByteBuffer destination)
      throws FsException, CodecException {
    try (BufferPool.Loan loan = frame(shard, frame)) {
      ByteBuffer content = loan.buffer();
      int count = Math.min(destination.remaining(), content.limit() - offset);
      destination.put(content.position(offset).limit(offset + count));
    }
  }

  private BufferPool.Loan frame(CompressedShard shard, int frame)
      throws FsException, CodecException {
    synchronized (locks[Math.floorMod(frame + shard.number(), LOADS)]) {
      BufferPool.Loan kept = memory.frames().get(shard, frame);
      return kept == null ? load(shard, frame) : kept;
    }
  }

  private BufferPool.Loan load(CompressedShard shard, int frame)
      throws FsException, CodecException {
    BufferPool.Loan content = memory.frames().take((int) shard.table().contentSize(frame));
    try (BufferPool.Loan stored =
        memory.scratch().take((int) shard.table().compressedSize(frame))) {
      shard.readFrame(frame, stored.buffer());
      reader.decompress(shard.table(), frame, stored.buffer(), content.buffer());
    } catch (Throwable e) {
      content.release();
      throw e;
    }
    memory.frames().put(shard, frame, content);
    return content;
  }

  /** Frees the memory that holds a shard's frames. */
  void remove(CompressedShard shard) {
    memory.frames().remove(shard, shard.table().frameCount());
  }

  @Override
  public void close() {
    reader.close();
  }
}
