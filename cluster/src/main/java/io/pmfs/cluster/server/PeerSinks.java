package io.pmfs.cluster.server;

import io.netty.buffer.ByteBuf;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** Sinks that take content for a peer. */
final class PeerSinks {
  private PeerSinks() {}

  /** Collects content in a buffer that has room for all of it. */
  static final class Memory implements ReadSink {
    private final ByteBuf out;
    private @Nullable ByteBuffer handed;

    Memory(ByteBuf out) {
      this.out = out;
    }

    @Override
    public ByteBuffer buffer(int size) {
      ByteBuffer buffer =
          size <= out.writableBytes()
              ? out.nioBuffer(out.writerIndex(), size)
              : ByteBuffer.allocateDirect(size);
      handed = buffer;
      return buffer;
    }

    @Override
    @SuppressWarnings("ReferenceEquality") // Identity, not equal bytes.
    public void accept(ReadResult piece) throws IOException {
      int size = piece.size();
      boolean isThere =
          piece instanceof ReadResult.Bytes bytes
              && bytes.buffer() == handed
              && bytes.buffer().position() == 0
              && size <= out.writableBytes();
      handed = null;
      if (!isThere) {
        copy(piece, out);
      }
      out.writerIndex(out.writerIndex() + size);
    }
  }

  /** Sends content on; large file ranges go directly from the file if the channel can do that. */
  static final class Stream implements ReadSink, AutoCloseable {
    private static final int PIECE_BYTES = 256 << 10;

    private final PeerAnswer answer;
    private final Runnable begin;
    private final boolean sendfile;
    private boolean begun;
    private long sent;

    /** The memory that {@link #buffer} handed out, for the next piece. */
    private @Nullable ByteBuf handed;

    /**
     * @param begin sends the head; called before the first piece is sent
     * @param sendfile whether the channel takes file ranges
     */
    Stream(PeerAnswer answer, boolean sendfile, Runnable begin) {
      this.answer = answer;
      this.sendfile = sendfile;
      this.begin = begin;
    }

    long sent() {
      return sent;
    }

    @Override
    public ByteBuffer buffer(int size) {
      ByteBuf memory = handed;
      if (memory == null || memory.capacity() < size) {
        close();
        memory = answer.allocate(size);
        handed = memory;
      }
      return memory.nioBuffer(0, size);
    }

    /** Releases the memory that was handed out. */
    @Override
    public void close() {
      if (handed != null) {
        handed.release();
        handed = null;
      }
    }

    @Override
    public void accept(ReadResult piece) throws IOException {
      if (piece instanceof ReadResult.FileRange range) {
        if (range.file().size() < range.position() + range.size()) {
          throw new EOFException("the file ends at byte " + range.file().size());
        }
        if (sendfile && range.size() > PeerResponder.COPIED_BYTES) {
          begin();
          sendWhole(range);
        } else {
          sendCopied(range);
        }
      } else if (piece instanceof ReadResult.Bytes bytes) {
        sendSliced(bytes.buffer());
      } else {
        ByteBuf out = copied(piece);
        begin();
        answer.send(out);
      }
      sent += piece.size();
    }

    private void begin() {
      if (!begun) {
        begun = true;
        begin.run();
      }
    }

    /**
     * Breaks off if the file fails: part of the range may be sent already, so the rest cannot come
     * from elsewhere.
     */
    private void sendWhole(ReadResult.FileRange range) throws IOException {
      try {
        answer.send(range);
      } catch (IOException e) {
        answer.breakOff();
        throw e;
      }
    }

    private void sendCopied(ReadResult.FileRange range) throws IOException {
      for (int from = 0; from < range.size(); from += PIECE_BYTES) {
        int size = Math.min(PIECE_BYTES, range.size() - from);
        ByteBuf out;
        try {
          out = copied(new ReadResult.FileRange(range.file(), range.position() + from, size));
        } catch (IOException e) {
          if (from > 0) {
            answer.breakOff();
          }
          throw e;
        }
        begin();
        answer.send(out);
      }
    }

    private void sendSliced(ByteBuffer bytes) throws IOException {
      for (int from = 0; from < bytes.remaining(); from += PIECE_BYTES) {
        int size = Math.min(PIECE_BYTES, bytes.remaining() - from);
        ByteBuf out = copied(new ReadResult.Bytes(bytes.slice(bytes.position() + from, size)));
        begin();
        answer.send(out);
      }
    }

    private ByteBuf copied(ReadResult piece) throws IOException {
      ByteBuf out = answer.allocate(piece.size());
      try {
        copy(piece, out);
        return out.writerIndex(piece.size());
      } catch (Throwable e) {
        out.release();
        throw e;
      }
    }
  }

  private static void copy(ReadResult piece, ByteBuf out) throws IOException {
    if (piece.size() > out.writableBytes()) {
      throw new IllegalStateException("the piece has more bytes than were requested");
    }
    piece.copyTo(out.nioBuffer(out.writerIndex(), piece.size()));
  }
}
