package io.pmfs.tier;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/**
 * Where the bytes that a read asked for are. Zero copy is a property of the result, not of the
 * caller: each caller takes what it can use directly and {@link #copyTo copies} the rest. Valid
 * only while the call that handed it out runs.
 */
public sealed interface ReadResult {
  /** How many bytes. */
  int size();

  /**
   * Copies all of it to the destination's position.
   *
   * @throws EOFException if the place holds less than it said
   * @throws IOException if the place cannot be read
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
   * @param copy how the JVM copies it: whoever touches memory that is defective, or behind the end
   *     of its file by now, ends with a signal
   */
  record Mapping(ByteBuffer memory, Copy copy) implements ReadResult {
    /** Copies the range to the destination's position, or fails as {@link #copyTo} does. */
    public interface Copy {
      void to(ByteBuffer destination) throws IOException;
    }

    /** Memory that can always be read. */
    public Mapping(ByteBuffer memory) {
      this(memory, destination -> destination.put(memory.duplicate()));
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
