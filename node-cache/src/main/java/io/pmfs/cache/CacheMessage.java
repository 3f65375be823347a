package io.pmfs.cache;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A message between a mount and the cache of its node. docs/formats.md describes the layout.
 *
 * @param id identifies a request and its answer
 * @param handle identifies a copy within its connection; 0 for none
 * @param bytes depends on the {@link Kind}
 * @param text the report of the cache; empty in other messages
 */
record CacheMessage(Kind kind, long id, long handle, long bytes, String text) {
  /** "PMC" and the version of the protocol. */
  private static final int MAGIC = 0x504d4301;

  private static final int SIZE = 2 * Integer.BYTES + 3 * Long.BYTES;

  CacheMessage(Kind kind, long id, long handle, long bytes) {
    this(kind, id, handle, bytes, "");
  }

  /** Kinds of messages, with their numbers in the protocol. */
  enum Kind {
    /** Carries an open file of the source; answered once its copy has {@code bytes} bytes. */
    ASK(1),
    /** Answered once the handle's copy has {@code bytes} bytes. */
    AWAIT(2),
    /** Closes a handle; not answered. */
    RELEASE(3),
    /** Answered with a report. */
    STATUS(4),
    /** The copy has its first {@code bytes} bytes; carries the copy's file if it answers ASK. */
    GROWING(16),
    /** The copy is complete, with {@code bytes} bytes; carries its file if it answers ASK. */
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
    /** The copy is queued. */
    BUSY(0),
    NO_ROOM(1),
    /** The file's file system is not listed in the cache's settings. */
    NOT_LISTED(2),
    /**
     * Not a regular file with content, or not open for reading, or on a file system that can reuse
     * its inode number with the same times.
     */
    UNFIT(3),
    /** The file changed, or could not be copied. */
    FAILED(4),
    /** The user or the connection has reached a limit. */
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

  /** Parses untrusted bytes; null if they are not a message. */
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
