package io.pmfs.stage;

import io.pmfs.compression.Codec;
import io.pmfs.compression.CodecException;
import io.pmfs.tier.ReadResult;
import io.pmfs.tier.ReadSink;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.RecursiveAction;
import org.jspecify.annotations.Nullable;

/**
 * Content that lies in compressed frames. Every frame is compared with its checksum each time it is
 * decompressed, so nothing else is ever passed on. Safe for use by many threads.
 */
final class FramedContent implements AutoCloseable {
  private static final ThreadLocal<ByteBuffer> SCRATCH =
      ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(Frames.SIZE + 4096));

  private final Frames frames;
  private final Codec codec;
  private final long contentSize;
  private final int frameSize;
  private final FramePool pool;

  FramedContent(Frames frames, Codec codec, long contentSize, int frameSize, FramePool pool) {
    this.frames = frames;
    this.codec = codec;
    this.contentSize = contentSize;
    this.frameSize = frameSize;
    this.pool = pool;
  }

  /**
   * Passes a range, which must lie within the content, to the sink in one piece: whole frames are
   * decompressed where it wants them, all but one by processors that have nothing to do, if there
   * are any; of others the pool has the rest for the next reader.
   */
  void read(long offset, int size, ReadSink sink) throws IOException {
    ByteBuffer answer = sink.buffer(size);
    int firstWhole = Math.toIntExact((offset + frameSize - 1) / frameSize);
    Deque<WholeFrame> others = new ArrayDeque<>(0);
    try {
      for (int done = size; done > 0; ) {
        int frame = Math.toIntExact((offset + done - 1) / frameSize);
        int start = (int) Math.max(0, offset - (long) frame * frameSize);
        int end = Math.toIntExact(offset + done - (long) frame * frameSize);
        done -= end - start;
        ByteBuffer part = answer.slice(done, end - start);
        if (part.remaining() < sizeOf(frame)) {
          readPart(frame, start, part);
        } else if (frame == firstWhole) {
          decompress(frame, part);
        } else {
          others.push(new WholeFrame(frame, part));
          others.element().fork();
        }
      }
    } finally {
      // Last in, first out: what nobody has begun is done here and now.
      others.forEach(WholeFrame::join);
    }
    for (WholeFrame other : others) {
      other.check();
    }
    sink.accept(new ReadResult.Bytes(answer.position(0).limit(size)));
  }

  /** The decompression of a whole frame by another thread, or by whoever waits for it. */
  private final class WholeFrame extends RecursiveAction {
    private static final long serialVersionUID = 1;

    private final int frame;
    private final transient ByteBuffer target;
    private transient @Nullable IOException failure;

    WholeFrame(int frame, ByteBuffer target) {
      this.frame = frame;
      this.target = target;
    }

    @Override
    protected void compute() {
      try {
        decompress(frame, target);
      } catch (IOException e) {
        failure = e;
      }
    }

    void check() throws IOException {
      if (failure != null) {
        throw failure;
      }
    }
  }

  private void readPart(int frame, int start, ByteBuffer answer) throws IOException {
    BufferPool.Loan loan = pool.get(this, frame);
    if (loan == null) {
      loan = pool.lend(sizeOf(frame));
      if (loan == null) {
        ByteBuffer once = ByteBuffer.allocateDirect(sizeOf(frame));
        decompress(frame, once);
        answer.put(once.slice(start, answer.remaining()));
        return;
      }
      boolean whole = false;
      try {
        decompress(frame, loan.buffer());
        whole = true;
      } finally {
        if (!whole) {
          loan.release();
        }
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
    ByteBuffer compressed = SCRATCH.get().clear();
    if (codec.maxCompressedSize(frameSize) > compressed.capacity()) {
      // Of a version with larger frames.
      compressed = ByteBuffer.allocateDirect(codec.maxCompressedSize(frameSize));
    }
    frames.read(frame, compressed);
    ByteBuffer content = target.slice();
    int size;
    try {
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

  /** Gives the pool back what it has of this. */
  @Override
  public void close() {
    pool.remove(this, Frames.count(contentSize, frameSize));
  }
}
