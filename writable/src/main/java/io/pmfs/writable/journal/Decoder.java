package io.pmfs.writable.journal;

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
public final class Decoder {
  private final ByteBuffer bytes;

  public Decoder(byte[] value) {
    bytes = ByteBuffer.wrap(value);
  }

  public long number() {
    long value = 0;
    for (int shift = 0; ; shift += 7) {
      byte next = bytes.get();
      value |= (next & 0x7fL) << shift;
      if (next >= 0) {
        return value;
      }
    }
  }

  public int small() {
    return (int) number();
  }

  public byte[] bytes() {
    byte[] value = new byte[Math.min(small(), bytes.remaining())];
    bytes.get(value);
    return value;
  }

  public FileName name() {
    return FileName.of(bytes());
  }

  public At at() {
    return new At(number(), name());
  }

  public boolean isNext() {
    return number() != 0;
  }

  /** Whether there are further fields. */
  public boolean hasMore() {
    return bytes.hasRemaining();
  }

  public Instant time() {
    return Instant.ofEpochSecond(bytes.getLong(), bytes.getInt());
  }

  public Attributes attributes() {
    return new Attributes(
        small(), small(), small(), small(), number(), number(), number(), time(), time(), time());
  }

  @Nullable
  public Stat stat(Protection protection) {
    return number() == 0 ? null : new Stat(number(), number(), time(), attributes(), protection);
  }
}
