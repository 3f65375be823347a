package io.pmfs.memory;

import java.io.IOException;
import java.nio.ByteBuffer;

/** Receives the pieces of a read's answer, in order. Used by one thread for one request. */
public interface ReadSink {
  /** Announces the total size of all pieces; called once, before the first piece. */
  default void expect(int size) {}

  /**
   * Direct memory for the next piece, used if its bytes have to be copied anyway: {@code size}
   * bytes from position 0.
   */
  ByteBuffer buffer(int size);

  /**
   * Receives the next piece. If this throws, the piece counts as not received, and the same range
   * may be offered again from another tier or the source.
   *
   * @throws IOException if the piece could not be read
   */
  void accept(ReadResult piece) throws IOException;

  /**
   * Bytes of the pieces received so far; -1 if unknown. If known, a piece that failed with an
   * unchecked exception may be offered again from another tier or the source.
   */
  default int received() {
    return -1;
  }
}
