package io.pmfs.cli.bugreport;

import io.pmfs.fuse.system.StrangersDirectory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** The last lines of a log file, or the first. */
final class Tail {
  /** The most bytes that are read. */
  static final int MOST = 1 << 20;

  private Tail() {}

  /**
   * The last lines; null if there is no such file.
   *
   * @param owner for root in the directory of a user: that user, who must own the directory and the
   *     file, which must not be a link and have no second name; negative if any owner is trusted
   */
  static byte @Nullable [] last(Path file, long owner) throws IOException {
    try {
      return owner < 0 ? last(own(file)) : last(strangers(file, owner));
    } catch (NoSuchFileException e) {
      return null;
    }
  }

  private static byte[] last(Source opened) throws IOException {
    try (Source source = opened) {
      long from = Math.max(0, source.size() - MOST);
      byte[] bytes = source.read(from);
      int begin = from == 0 ? 0 : indexOf(bytes, '\n') + 1;
      return Arrays.copyOfRange(bytes, begin, bytes.length);
    }
  }

  /** The first lines; null if there is no such file. Parameters as for {@link #last}. */
  static byte @Nullable [] first(Path file, long owner) throws IOException {
    try (Source source = owner < 0 ? own(file) : strangers(file, owner)) {
      byte[] bytes = source.read(0);
      int end = bytes.length;
      while (end > 0 && bytes.length == MOST && bytes[end - 1] != '\n') {
        end--;
      }
      return Arrays.copyOf(bytes, end);
    } catch (NoSuchFileException e) {
      return null;
    }
  }

  /** An open file. */
  private interface Source extends AutoCloseable {
    long size() throws IOException;

    /** At most {@link #MOST} bytes. */
    byte[] read(long from) throws IOException;

    @Override
    void close() throws IOException;
  }

  private static Source own(Path file) throws IOException {
    // Opening another kind of file could block.
    if (Files.exists(file) && !Files.isRegularFile(file)) {
      throw new IOException(file + ": not a regular file");
    }
    FileChannel channel = FileChannel.open(file, StandardOpenOption.READ);
    return new Source() {
      @Override
      public long size() throws IOException {
        return channel.size();
      }

      @Override
      public byte[] read(long from) throws IOException {
        return bytes(channel, from);
      }

      @Override
      public void close() throws IOException {
        channel.close();
      }
    };
  }

  /** Nothing is opened by a name that the user could change meanwhile. */
  private static Source strangers(Path file, long owner) throws IOException {
    StrangersDirectory.OpenFile opened;
    try (StrangersDirectory directory = StrangersDirectory.open(file.resolveSibling(""), owner)) {
      opened = directory.open(String.valueOf(file.getFileName()));
    }
    return new Source() {
      @Override
      public long size() {
        return opened.size();
      }

      @Override
      public byte[] read(long from) throws IOException {
        return opened.read(from, MOST);
      }

      @Override
      public void close() {
        opened.close();
      }
    };
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
