package io.pmfs.stage.formats;

import io.pmfs.compression.CodecException;
import io.pmfs.compression.ZstdCodec;
import io.pmfs.memory.BufferPool;
import io.pmfs.memory.DirectMemory;
import io.pmfs.memory.FramePool;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * Content in compressed frames. Every frame is compared with its checksum each time it is
 * decompressed, so unverified bytes are never passed on. Thread-safe.
 */
final class FramedContent implements AutoCloseable {
  private final Frames frames;
  private final ZstdCodec codec;
  private final long contentSize;
  private final int frameSize;
  private final DirectMemory memory;
  private final FramePool pool;

  FramedContent(
      Frames frames, ZstdCodec codec, long contentSize, int frameSize, DirectMemory memory) {
    this.frames = frames;
    this.codec = codec;
    this.contentSize = contentSize;
    this.frameSize = frameSize;
    this.memory = memory;
    this.pool = memory.frames();
  }

  /**
   * Passes a range, which must lie within the content, to the sink in one piece. Whole frames are
   * decompressed directly into the sink's buffer; a frame read in part is kept in the pool for the
   * next reader.
   */
  void copyTo(long offset, int size, ReadSink sink) throws IOException {
    ByteBuffer answer = sink.buffer(size);
    int done = 0;
    while (done < size) {
      int frame = Math.toIntExact((offset + done) / frameSize);
      int start = (int) ((offset + done) % frameSize);
      int count = Math.min(sizeOf(frame) - start, size - done);
      if (count == sizeOf(frame)) {
        decompress(frame, answer.slice(done, count));
      } else {
        readPart(frame, start, answer.slice(done, count));
      }
      done += count;
    }
    sink.accept(new ReadResult.Bytes(answer.position(0).limit(size)));
  }

  private void readPart(int frame, int start, ByteBuffer answer) throws IOException {
    BufferPool.Loan loan = pool.get(this, frame);
    if (loan == null) {
      loan = pool.take(sizeOf(frame));
      try {
        decompress(frame, loan.buffer());
      } catch (Throwable e) {
        loan.release();
        throw e;
      }
      pool.put(this, frame, loan);
    }
    try {
      answer.put(loan.buffer().slice(start, answer.remaining()));
    } finally {
      loan.release();
    }
  }

  /** Fills the target with a frame's content. */
  private void decompress(int frame, ByteBuffer target) throws IOException {
    ByteBuffer content = target.slice();
    int size;
    try (BufferPool.Loan loan = memory.scratch().take(codec.maxCompressedSize(frameSize))) {
      ByteBuffer compressed = loan.buffer();
      frames.readFrame(frame, compressed);
      size = codec.decompress(compressed.flip(), content);
    } catch (CodecException e) {
      throw new MismatchException("frame " + frame + " is damaged: " + e.getMessage());
    }
    if (size != sizeOf(frame) || Blocks.checksum(content.flip()) != frames.checksum(frame)) {
      throw new MismatchException("the checksum of frame " + frame + " does not match");
    }
  }

  private int sizeOf(int frame) {
    return (int) Math.min(frameSize, contentSize - (long) frame * frameSize);
  }

  @Override
  public void close() {
    pool.remove(this, Frames.count(contentSize, frameSize));
  }
}
