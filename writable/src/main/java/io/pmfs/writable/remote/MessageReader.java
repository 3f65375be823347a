package io.pmfs.writable.remote;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.WritableFileSystem.AtSource;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Entry;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.places.CopyBuffers;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Supplier;

/**
 * Reads the values of a message, which may contain anything: an IOException reports values that
 * {@link MessageWriter} does not write. Lengths are checked against the message.
 */
final class MessageReader {
  private final ByteBuffer bytes;
  private Message.Head head = Message.Head.NONE;

  interface Reading<T> {
    T from(MessageReader in) throws IOException;
  }

  MessageReader(byte[] message) {
    bytes = ByteBuffer.wrap(message);
  }

  private ByteBuffer next(int size) throws IOException {
    if (bytes.remaining() < size) {
      throw new EOFException("the message ends early");
    }
    return bytes;
  }

  long number() throws IOException {
    return next(Long.BYTES).getLong();
  }

  int small() throws IOException {
    return next(Integer.BYTES).getInt();
  }

  int octet() throws IOException {
    return Byte.toUnsignedInt(next(1).get());
  }

  boolean isNext() throws IOException {
    return octet() != 0;
  }

  /** A count of following bytes, or of values of at least one byte each. */
  private int count() throws IOException {
    int count = small();
    if (count < 0 || count > bytes.remaining()) {
      throw new IOException("a length of " + Integer.toUnsignedString(count));
    }
    return count;
  }

  byte[] bytes() throws IOException {
    byte[] value = new byte[count()];
    bytes.get(value);
    return value;
  }

  ByteBuffer content() throws IOException {
    int size = count();
    ByteBuffer value = bytes.slice(bytes.position(), size);
    bytes.position(bytes.position() + size);
    return value;
  }

  /** Bytes in native memory for system calls, for {@link CopyBuffers#give}. */
  ByteBuffer nativeContent() throws IOException {
    ByteBuffer value = content();
    if (value.remaining() > CopyBuffers.BYTES) {
      throw new IOException("more than " + CopyBuffers.BYTES + " bytes");
    }
    return CopyBuffers.take(value.remaining()).put(value).flip();
  }

  FileName name() throws IOException {
    return FileName.of(bytes());
  }

  String text() throws IOException {
    return new String(bytes(), StandardCharsets.UTF_8);
  }

  Instant time() throws IOException {
    try {
      return Instant.ofEpochSecond(number(), small());
    } catch (DateTimeException | ArithmeticException e) {
      throw new IOException("invalid time", e);
    }
  }

  UUID id() throws IOException {
    return new UUID(number(), number());
  }

  <T> Optional<T> optional(Reading<T> reading) throws IOException {
    return isNext() ? Optional.of(reading.from(this)) : Optional.empty();
  }

  <T> List<T> list(Reading<T> reading) throws IOException {
    List<T> values = new ArrayList<>();
    for (int left = count(); left > 0; left--) {
      values.add(reading.from(this));
    }
    return values;
  }

  // ---- values of the file system

  Message.Head head() throws IOException {
    head = new Message.Head(small(), small(), number(), number(), number(), small());
    return head;
  }

  Caller caller() throws IOException {
    return new Caller(head.unique(), small(), small(), 0).on(head.node());
  }

  Attributes attributes() throws IOException {
    return new Attributes(
        small(), small(), small(), small(), number(), number(), number(), time(), time(), time());
  }

  Node node() throws IOException {
    return new Node(number(), attributes());
  }

  Entry entry() throws IOException {
    return new Entry(name(), number(), type(), number());
  }

  private FileType type() throws IOException {
    int type = octet();
    return valid(() -> FileType.ofNumber(type));
  }

  Opened opened() throws IOException {
    return new Opened(
        node(), number(), isNext(), number(), optional(MessageReader::atSource).orElse(null));
  }

  AtSource atSource() throws IOException {
    FileName directory = name();
    FileName name = name();
    long inode = number();
    return valid(() -> new AtSource(directory, name, inode));
  }

  NewAttributes newAttributes() throws IOException {
    return new NewAttributes(
        optional(MessageReader::small).orElse(null),
        optional(MessageReader::small).orElse(null),
        optional(MessageReader::small).orElse(null),
        optional(MessageReader::number).orElse(null),
        optional(MessageReader::time).orElse(null),
        optional(MessageReader::time).orElse(null),
        number(),
        isNext());
  }

  Map<FileName, byte[]> extended() throws IOException {
    Map<FileName, byte[]> attributes = new LinkedHashMap<>();
    for (int left = count(); left > 0; left--) {
      attributes.put(name(), bytes());
    }
    return attributes;
  }

  StoreStatistics statistics() throws IOException {
    return new StoreStatistics(
        number(), number(), number(), number(), number(), number(), number(), number());
  }

  FsException failure() throws IOException {
    return new FsException(Errno.of(small()), text());
  }

  /** A value whose type rejects some values; another node may send such a value. */
  private static <T> T valid(Supplier<T> value) throws IOException {
    try {
      return value.get();
    } catch (IllegalArgumentException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  // ---- drain status

  DrainStatus status() throws IOException {
    return new DrainStatus(
        number(),
        number(),
        number(),
        number(),
        number(),
        number(),
        number(),
        number(),
        number(),
        number(),
        list(MessageReader::named),
        optional(MessageReader::away).orElse(null));
  }

  private DrainStatus.Failure named() throws IOException {
    return new DrainStatus.Failure(
        text(), text(), optional(MessageReader::failure).orElse(null), isNext(), number());
  }

  private DrainStatus.Away away() throws IOException {
    return new DrainStatus.Away(text(), isNext(), time(), text(), number());
  }

  // ---- content kept by a node

  NodeData.Id file() throws IOException {
    return new NodeData.Id(number(), number());
  }

  NodeData.Target target() throws IOException {
    FileName directory = name();
    FileName name = name();
    long inode = number();
    int uid = small();
    int gid = small();
    return valid(() -> new NodeData.Target(directory, name, inode, uid, gid));
  }

  NodeData.Paused paused() throws IOException {
    return new NodeData.Paused(file(), number(), frozen());
  }

  NodeData.Frozen frozen() throws IOException {
    long size = number();
    long blocks = number();
    Instant modified = time();
    boolean onlyGrew = isNext();
    ByteBuffer content = optional(MessageReader::content).orElse(null);
    return valid(() -> new NodeData.Frozen(size, blocks, modified, onlyGrew, content));
  }

  Message.Joined joined() throws IOException {
    int node = small();
    String mount = text();
    return valid(() -> new Message.Joined(node, mount));
  }
}
