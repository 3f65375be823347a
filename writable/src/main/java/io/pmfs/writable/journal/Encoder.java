package io.pmfs.writable.journal;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Writes the values of the tables; {@link Decoder} reads them. docs/formats.md describes both. */
public final class Encoder {
  private byte[] bytes = new byte[128];
  private int size;

  public Encoder number(long value) {
    ensure(10);
    long rest = value;
    while ((rest & ~0x7fL) != 0) {
      bytes[size++] = (byte) (rest | 0x80);
      rest >>>= 7;
    }
    bytes[size++] = (byte) rest;
    return this;
  }

  public Encoder bytes(byte[] value) {
    number(value.length);
    ensure(value.length);
    System.arraycopy(value, 0, bytes, size, value.length);
    size += value.length;
    return this;
  }

  public Encoder name(FileName name) {
    return bytes(name.bytes());
  }

  public Encoder at(At at) {
    return number(at.directory()).name(at.name());
  }

  public Encoder flag(boolean isSet) {
    return number(isSet ? 1 : 0);
  }

  public Encoder time(Instant time) {
    ensure(12);
    ByteBuffer.wrap(bytes, size, 12).putLong(time.getEpochSecond()).putInt(time.getNano());
    size += 12;
    return this;
  }

  public Encoder attributes(Attributes attributes) {
    return number(attributes.mode())
        .number(attributes.linkCount())
        .number(Integer.toUnsignedLong(attributes.uid()))
        .number(Integer.toUnsignedLong(attributes.gid()))
        .number(attributes.device())
        .number(attributes.size())
        .number(attributes.blocks())
        .time(attributes.accessTime())
        .time(attributes.modificationTime())
        .time(attributes.changeTime());
  }

  public Encoder stat(@Nullable Stat stat) {
    if (stat == null) {
      return number(0);
    }
    return number(1)
        .number(stat.device())
        .number(stat.inode())
        .time(stat.birth())
        .attributes(stat.attributes());
  }

  private void ensure(int more) {
    if (bytes.length - size < more) {
      bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, size + more));
    }
  }

  public byte[] toBytes() {
    return Arrays.copyOf(bytes, size);
  }
}
