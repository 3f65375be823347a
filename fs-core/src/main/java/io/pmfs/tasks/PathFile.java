package io.pmfs.tasks;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.pmfs.metadata.FileName;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A list of paths in a file: docs/formats.md "Lists of paths". Opening reads it to the end once, so
 * that a truncated list is rejected before a task begins.
 */
public final class PathFile implements TaskPaths {
  private static final Logger log = LoggerFactory.getLogger(PathFile.class);

  /** The first bytes of a list. */
  static final byte[] MAGIC = "pmfs paths 1\n".getBytes(US_ASCII);

  private static final int NO_PATH = 0xFFFE;
  private static final int END = 0xFFFF;
  private static final int END_BYTES = 2 + 8 + 4;
  private static final int BUFFER_BYTES = 64 << 10;

  private final FileChannel file;
  private final @Nullable Path path;
  private final long first; // offset of the first record
  private final long count;

  private PathFile(FileChannel file, @Nullable Path path, long first, long count) {
    this.file = file;
    this.path = path;
    this.first = first;
    this.count = count;
  }

  /**
   * Opens a list that extends to the end of the file, and takes over the file. *
   *
   * @param path what to remove on close; null if the file has no name
   * @param start the offset of the list in the file
   * @throws IllegalArgumentException with a message for the user if the list is not complete
   */
  public static PathFile open(FileChannel file, @Nullable Path path, long start)
      throws IOException {
    Records records = new Records(file, start);
    byte[] magic = records.bytes(MAGIC.length);
    if (!Arrays.equals(magic, MAGIC)) {
      throw new IllegalArgumentException("not a list of paths");
    }
    long count = 0;
    long lines = 0;
    for (int length; (length = records.length()) != END; ) {
      lines++;
      if (length != NO_PATH) {
        TaskPaths.checked(FileName.of(records.bytes(length)));
        count++;
        if (count == Integer.MAX_VALUE) {
          throw new IllegalArgumentException("more than " + (count - 1) + " paths");
        }
      }
    }
    int checksum = records.checksumBeforeLength();
    boolean isWhole = records.number(8) == lines && (int) records.number(4) == checksum;
    if (!isWhole || records.at() != file.size()) {
      throw new IllegalArgumentException("the list of paths is damaged");
    }
    return new PathFile(file, path, start + MAGIC.length, count);
  }

  /** The file's name; null if it has none and therefore does not outlive this process. */
  public @Nullable Path path() {
    return path;
  }

  @Override
  public long count() {
    return count;
  }

  @Override
  public Cursor open() {
    return new FileCursor(new Records(file, first), 0, 0);
  }

  @Override
  public void close() {
    try {
      file.close();
      if (path != null) {
        Files.deleteIfExists(path);
      }
    } catch (IOException e) {
      log.warn("{}: cannot remove the list of an ended task: {}", path, e.getMessage());
    }
  }

  /** Closes the file without removing it, for the next daemon. */
  public void leave() {
    try {
      file.close();
    } catch (IOException e) {
      log.debug("{}: {}", path, e.getMessage());
    }
  }

  private static final class FileCursor implements Cursor {
    private final Records records;
    private long position;
    private long line;
    private boolean ended;

    FileCursor(Records records, long position, long line) {
      this.records = records;
      this.position = position;
      this.line = line;
    }

    @Override
    public Cursor fork() {
      FileCursor fork = new FileCursor(new Records(records.file, records.at()), position, line);
      fork.ended = ended;
      return fork;
    }

    @Override
    public @Nullable FileName next() {
      try {
        while (!ended) {
          int length = records.length();
          if (length == END) {
            ended = true;
            break;
          }
          line++;
          if (length != NO_PATH) {
            position++;
            return FileName.of(records.bytes(length));
          }
        }
        return null;
      } catch (IOException | IllegalArgumentException e) {
        String why = "the list of paths cannot be read: " + e.getMessage();
        throw new UncheckedIOException(why, e instanceof IOException io ? io : new IOException(e));
      }
    }

    @Override
    public long position() {
      return position;
    }

    @Override
    public long line() {
      return line;
    }
  }

  /** Reads the file from an offset on. */
  private static final class Records {
    private final FileChannel file;
    private final ByteBuffer buffer = ByteBuffer.allocate(BUFFER_BYTES).limit(0);
    private final CRC32C crc = new CRC32C();
    private final byte[] field = new byte[8];
    private long next;
    private int checksum;

    Records(FileChannel file, long start) {
      this.file = file;
      this.next = start;
    }

    /** The offset of the next byte. */
    long at() {
      return next - buffer.remaining();
    }

    int length() throws IOException {
      checksum = (int) crc.getValue();
      int length = (int) number(2);
      if (length > MAX_PATH_BYTES && length != NO_PATH && length != END) {
        throw new IllegalArgumentException("the list of paths is damaged");
      }
      return length;
    }

    /** The checksum of everything before the length that was read last. */
    int checksumBeforeLength() {
      return checksum;
    }

    long number(int size) throws IOException {
      fill(field, size);
      long number = 0;
      for (int i = 0; i < size; i++) {
        number = number << 8 | (field[i] & 0xFF);
      }
      return number;
    }

    byte[] bytes(int count) throws IOException {
      byte[] bytes = new byte[count];
      fill(bytes, count);
      return bytes;
    }

    private void fill(byte[] bytes, int count) throws IOException {
      for (int done = 0; done < count; ) {
        if (!buffer.hasRemaining()) {
          refill();
        }
        int more = Math.min(count - done, buffer.remaining());
        buffer.get(bytes, done, more);
        done += more;
      }
      crc.update(bytes, 0, count);
    }

    private void refill() throws IOException {
      buffer.clear();
      int read = file.read(buffer, next);
      buffer.flip();
      if (read <= 0) {
        throw new IllegalArgumentException("the list of paths is truncated");
      }
      next += read;
    }
  }

  /** Writes a list: one record per line, with or without a path. */
  public static final class Writer {
    private final OutputStream out;
    private final CRC32C crc = new CRC32C();
    private long lines;

    /** Begins a list. The stream should be buffered and is left open. */
    public Writer(OutputStream out) throws IOException {
      this.out = out;
      write(MAGIC);
    }

    /** Adds a line; null for a line without a path. */
    public void add(@Nullable FileName path) throws IOException {
      lines++;
      if (path == null) {
        write(number(NO_PATH, 2));
      } else {
        byte[] bytes = TaskPaths.checked(path).bytes();
        write(number(bytes.length, 2));
        write(bytes);
      }
    }

    /** Ends the list; without this call the list is invalid. */
    public void end() throws IOException {
      int checksum = (int) crc.getValue();
      ByteBuffer end = ByteBuffer.allocate(END_BYTES);
      out.write(end.putShort((short) END).putLong(lines).putInt(checksum).array());
    }

    private void write(byte[] bytes) throws IOException {
      crc.update(bytes, 0, bytes.length);
      out.write(bytes);
    }

    private static byte[] number(int number, int size) {
      ByteBuffer bytes = ByteBuffer.allocate(size);
      return bytes.putShort((short) number).array();
    }
  }
}
