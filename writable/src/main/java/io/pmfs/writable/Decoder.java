package io.pmfs.writable;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * Reads the values of the tables.
 *
 * <p>Throws {@link BufferUnderflowException} or another runtime exception for bytes that {@link
 * Encoder} did not write.
 */
final class Decoder {
  private final ByteBuffer bytes;

  Decoder(byte[] value) {
    bytes = ByteBuffer.wrap(value);
  }

  long number() {
    long value = 0;
    for (int shift = 0; ; shift += 7) {
      byte next = bytes.get();
      value |= (next & 0x7fL) << shift;
      if (next >= 0) {
        return value;
      }
    }
  }

  int small() {
    return (int) number();
  }

  byte[] bytes() {
    byte[] value = new byte[Math.min(small(), bytes.remaining())];
    bytes.get(value);
    return value;
  }

  FileName name() {
    return FileName.of(bytes());
  }

  At at() {
    return new At(number(), name());
  }

  /** Reads a flag. */
  boolean isNext() {
    return number() != 0;
  }

  Instant time() {
    return Instant.ofEpochSecond(bytes.getLong(), bytes.getInt());
  }

  Attributes attributes() {
    return new Attributes(
        small(), small(), small(), small(), number(), number(), number(), time(), time(), time());
  }

  @Nullable Stat stat() {
    return number() == 0 ? null : new Stat(number(), number(), time(), attributes());
  }
}
