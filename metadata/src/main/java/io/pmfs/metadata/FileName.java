package io.pmfs.metadata;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;

/**
 * The bytes of a name, a path or a symbolic link's target, exactly as the file system has them.
 * POSIX names are bytes other than NUL without a particular encoding; this class decodes them only
 * for display. Immutable.
 */
public final class FileName implements Comparable<FileName> {
  private final byte[] bytes;

  private FileName(byte[] bytes) {
    this.bytes = bytes;
  }

  public static FileName of(byte[] bytes) {
    return new FileName(bytes.clone());
  }

  /** Wraps bytes that must not change afterwards; does not copy them. */
  public static FileName wrap(byte[] bytes) {
    return new FileName(bytes);
  }

  /** The name whose bytes are the UTF-8 form of {@code text}. */
  public static FileName of(String text) {
    return new FileName(text.getBytes(UTF_8));
  }

  /** The name whose bytes are the chars of {@code text}, each below 256. */
  public static FileName ofLatin1(String text) {
    return new FileName(text.getBytes(ISO_8859_1));
  }

  public byte[] bytes() {
    return bytes.clone();
  }

  /** The internal array; callers must not change it. */
  byte[] raw() {
    return bytes;
  }

  public int size() {
    return bytes.length;
  }

  /** Whether this is "." or "..", which name no entry of a directory. */
  public boolean isDots() {
    return (bytes.length == 1 || (bytes.length == 2 && bytes[1] == '.')) && bytes[0] == '.';
  }

  /** This path with {@code name} appended after a slash; just {@code name} when this is empty. */
  public FileName resolve(FileName name) {
    if (bytes.length == 0) {
      return name;
    }
    byte[] joined = Arrays.copyOf(bytes, bytes.length + 1 + name.bytes.length);
    joined[bytes.length] = '/';
    System.arraycopy(name.bytes, 0, joined, bytes.length + 1, name.bytes.length);
    return new FileName(joined);
  }

  /**
   * Whether a directory can have an entry of this name: it is not empty, neither . nor .., and has
   * no slash and no NUL. Checks names from other nodes.
   */
  public boolean isEntry() {
    return isEntry(0, bytes.length);
  }

  /** Whether every component of this path {@link #isEntry is an entry}, or the path is empty. */
  public boolean isBelow() {
    int start = 0;
    for (int at = 0; at < bytes.length; at++) {
      if (bytes[at] == '/') {
        if (!isEntry(start, at)) {
          return false;
        }
        start = at + 1;
      }
    }
    return bytes.length == 0 || isEntry(start, bytes.length);
  }

  private boolean isEntry(int start, int end) {
    boolean isDots = true;
    for (int at = start; at < end; at++) {
      if (bytes[at] == '/' || bytes[at] == 0) {
        return false;
      }
      isDots &= bytes[at] == '.';
    }
    return !isDots || end - start > 2;
  }

  /** Each byte as one char: cheap, reversible, not for display. */
  public String toLatin1() {
    return new String(bytes, ISO_8859_1);
  }

  @Override
  public int compareTo(FileName other) {
    return Arrays.compareUnsigned(bytes, other.bytes);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof FileName name && Arrays.equals(bytes, name.bytes);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(bytes);
  }

  /** For messages: decoded as UTF-8, with replacement characters for invalid bytes. */
  @Override
  public String toString() {
    return new String(bytes, UTF_8);
  }
}
