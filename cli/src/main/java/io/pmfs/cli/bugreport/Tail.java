package io.pmfs.cli.bugreport;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The last lines of a log file, or the first. */
final class Tail {
  /** The most bytes that are read. */
  static final int MOST = 1 << 20;

  private Tail() {}

  /** The last lines; null if there is no such file. */
  static byte @Nullable [] last(Path file, long owner) throws IOException {
    FileChannel opened = open(file, owner);
    if (opened == null) {
      return null;
    }
    try (FileChannel channel = opened) {
      long from = Math.max(0, channel.size() - MOST);
      byte[] bytes = bytes(channel, from);
      int begin = from == 0 ? 0 : indexOf(bytes, '\n') + 1;
      return Arrays.copyOfRange(bytes, begin, bytes.length);
    }
  }

  /** The first lines; null if there is no such file. */
  static byte @Nullable [] first(Path file, long owner) throws IOException {
    FileChannel opened = open(file, owner);
    if (opened == null) {
      return null;
    }
    try (FileChannel channel = opened) {
      byte[] bytes = bytes(channel, 0);
      int end = bytes.length;
      while (end > 0 && bytes.length == MOST && bytes[end - 1] != '\n') {
        end--;
      }
      return Arrays.copyOf(bytes, end);
    }
  }

  /**
   * Opens a regular file.
   *
   * @param owner for root in the directory of a user: the user who must own the file, which must
   *     not be a link and have no second name; negative if any owner is trusted
   */
  private static @Nullable FileChannel open(Path file, long owner) throws IOException {
    boolean isOfStranger = owner >= 0;
    LinkOption[] links =
        isOfStranger ? new LinkOption[] {LinkOption.NOFOLLOW_LINKS} : new LinkOption[0];
    Map<String, Object> attributes;
    try {
      attributes = Files.readAttributes(file, "unix:uid,nlink,isRegularFile", links);
    } catch (NoSuchFileException e) {
      return null;
    }
    // Opening another kind of file could block.
    if (!Boolean.TRUE.equals(attributes.get("isRegularFile"))) {
      throw new IOException(file + ": not a regular file");
    }
    if (isOfStranger
        && (!(attributes.get("uid") instanceof Integer uid)
            || Integer.toUnsignedLong(uid) != owner
            || !(attributes.get("nlink") instanceof Integer names)
            || names != 1)) {
      throw new IOException(file + ": not a file of user " + owner + " alone");
    }
    Set<OpenOption> options =
        isOfStranger
            ? Set.of(StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS)
            : Set.of(StandardOpenOption.READ);
    return FileChannel.open(file, options);
  }

  private static byte[] bytes(FileChannel channel, long from) throws IOException {
    ByteBuffer buffer = ByteBuffer.allocate(MOST);
    long position = from;
    while (buffer.hasRemaining()) {
      int count = channel.read(buffer, position);
      if (count < 0) {
        break;
      }
      position += count;
    }
    return Arrays.copyOf(buffer.array(), buffer.position());
  }

  private static int indexOf(byte[] bytes, char c) {
    for (int i = 0; i < bytes.length; i++) {
      if (bytes[i] == c) {
        return i;
      }
    }
    return -1;
  }
}
