package io.pmfs.tier;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * Takes the pieces of an answer to a read, in order. Belongs to one request and is used by one
 * thread.
 */
public interface ReadSink {
  /** Says how many bytes all pieces together will have; called once, before the first piece. */
  default void expect(int size) {}

  /**
   * Memory that the next piece may be read into when it has to be read anyway: {@code size} bytes
   * from position 0, direct.
   */
  ByteBuffer buffer(int size);

  /**
   * Takes the next piece. When it throws, the piece counts as not taken, and the same range may be
   * offered again from another place.
   *
   * @throws IOException if the place could not be read
   */
  void accept(ReadResult piece) throws IOException;
}
