package io.pmfs.memory;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * Receives the pieces of an answer to a read, in order. Belongs to one request and is used by one
 * thread.
 */
public interface ReadSink {
  /** Announces the total size of all pieces; called once, before the first piece. */
  default void expect(int size) {}

  /**
   * Direct memory into which the next piece may be read if it has to be read anyway: {@code size}
   * bytes from position 0.
   */
  ByteBuffer buffer(int size);

  /**
   * Receives the next piece. If this throws, the piece counts as not received, and the same range
   * may be offered again from another place.
   *
   * @throws IOException if the piece could not be read
   */
  void accept(ReadResult piece) throws IOException;

  /**
   * Bytes of the pieces that were received so far; -1 if that is not known. Where it is, a piece
   * that met an error of the program may be offered again from another place.
   */
  default int received() {
    return -1;
  }
}
