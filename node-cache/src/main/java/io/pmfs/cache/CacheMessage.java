package io.pmfs.cache;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A message between a mount and the cache of its node. docs/formats.md has its layout.
 *
 * @param id the request that this is or answers
 * @param handle the copy that this is about, within its connection; 0 for none
 * @param bytes how far the copy is wanted or has come, or why there is none; see {@link Kind}
 * @param text the report; else empty
 */
record CacheMessage(Kind kind, long id, long handle, long bytes, String text) {
  /** "PMC" and the version of the protocol. */
  private static final int MAGIC = 0x504d4301;

  private static final int SIZE = 2 * Integer.BYTES + 3 * Long.BYTES;

  CacheMessage(Kind kind, long id, long handle, long bytes) {
    this(kind, id, handle, bytes, "");
  }

  /** What a message says. The numbers are those of the protocol. */
  enum Kind {
    /** Comes with an open file of the source; answered when its copy has {@code bytes} bytes. */
    ASK(1),
    /** The same for a copy that this connection has a handle of. */
    AWAIT(2),
    /** The handle's file is closed; not answered. */
    RELEASE(3),
    /** Answered with a report. */
    STATUS(4),
    /** The copy has its first {@code bytes} bytes; comes with its file if the question was ASK. */
    GROWING(16),
    /** The copy is whole and has {@code bytes} bytes; the same. */
    WHOLE(17),
    /** There is no copy; {@code bytes} is the number of a {@link Refusal}. */
    REFUSED(18),
    REPORT(19);

    private final int number;

    Kind(int number) {
      this.number = number;
    }

    private static @Nullable Kind of(int number) {
      for (Kind kind : values()) {
        if (kind.number == number) {
          return kind;
        }
      }
      return null;
    }
  }

  /** Why the cache has no copy. */
  enum Refusal {
    /** It is being made, but not at once: others come first. */
    BUSY(0),
    NO_ROOM(1),
    /** Root did not list its file system. */
    NOT_LISTED(2),
    /**
     * Not a regular file with content, or not open for reading; or its file system can give its
     * number and times to another file.
     */
    UNFIT(3),
    /** It changed or could not be read or written while it was copied. */
    FAILED(4),
    /** The user or the connection has too much under way or open. */
    LIMIT(5);

    private final int number;

    Refusal(int number) {
      this.number = number;
    }

    int number() {
      return number;
    }

    static Refusal of(long number) {
      for (Refusal refusal : values()) {
        if (refusal.number == number) {
          return refusal;
        }
      }
      return FAILED;
    }
  }

  /** The message in some bytes, which anybody may have sent; null if they are none. */
  static @Nullable CacheMessage parse(ByteBuffer in) {
    if (in.remaining() < SIZE) {
      return null;
    }
    int magic = in.getInt();
    Kind kind = Kind.of(in.getInt());
    long id = in.getLong();
    long handle = in.getLong();
    long count = in.getLong();
    boolean isRight = magic == MAGIC && id >= 0 && handle >= 0 && count >= 0;
    if (kind == null || !isRight || (in.hasRemaining() && kind != Kind.REPORT)) {
      return null;
    }
    return new CacheMessage(kind, id, handle, count, UTF_8.decode(in).toString());
  }

  byte[] encoded() {
    byte[] content = text.getBytes(UTF_8);
    return ByteBuffer.allocate(SIZE + content.length)
        .putInt(MAGIC)
        .putInt(kind.number)
        .putLong(id)
        .putLong(handle)
        .putLong(bytes)
        .put(content)
        .array();
  }
}
