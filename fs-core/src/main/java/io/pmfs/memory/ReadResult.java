package io.pmfs.memory;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/**
 * Where the bytes of a read are. A caller uses directly the kinds it supports, without a copy, and
 * {@link #copyTo copies} the rest. Valid only during the call that passes it.
 */
public sealed interface ReadResult {
  int size();

  /**
   * Copies all bytes into the destination, from its position on.
   *
   * @throws EOFException if there are fewer bytes than {@link #size}
   * @throws IOException if the bytes cannot be read
   */
  void copyTo(ByteBuffer destination) throws IOException;

  /** Bytes in a buffer, from its position to its limit. */
  record Bytes(ByteBuffer buffer) implements ReadResult {
    @Override
    public int size() {
      return buffer.remaining();
    }

    @Override
    public void copyTo(ByteBuffer destination) {
      destination.put(buffer.duplicate());
    }
  }

  /**
   * A range of a mapping: memory of the tier itself, for system calls.
   *
   * @param copy copies the bytes in the JVM: touching defective memory directly, or memory beyond
   *     the file's current end, kills the process with a signal
   */
  record Mapping(ByteBuffer memory, Copy copy) implements ReadResult {
    /** Copies the range into the destination, or fails like {@link #copyTo}. */
    public interface Copy {
      void to(ByteBuffer destination) throws IOException;
    }

    @Override
    public int size() {
      return memory.remaining();
    }

    @Override
    public void copyTo(ByteBuffer destination) throws IOException {
      copy.to(destination);
    }
  }

  /** A range of an open file. */
  record FileRange(FileChannel file, long position, int size) implements ReadResult {
    @Override
    public void copyTo(ByteBuffer destination) throws IOException {
      int limit = destination.limit();
      int end = destination.position() + size;
      destination.limit(end);
      try {
        long from = position;
        while (destination.hasRemaining()) {
          int count = file.read(destination, from);
          if (count < 0) {
            throw new EOFException("the file ends at " + from);
          }
          from += count;
        }
      } finally {
        destination.limit(limit);
      }
    }
  }
}
