package io.pmfs.metadata;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Encodes and decodes all values. Every value starts with the version of its layout; numbers are
 * big-endian. Decoding returns null for a value of another version, of a wrong length or with an
 * impossible field, and never throws. The layout is in docs/formats.md.
 */
final class Values {
  /** The layout of the namespace as a whole: its families and their meaning. */
  public static final int FORMAT = 1;

  private static final byte VERSION = 1;

  /**
   * Version 1 had no pins, version 2 no extents. Copies of version 3 may be of files as another
   * node of a cluster saw them earlier: docs/decisions/0055.
   */
  private static final byte COPY_VERSION = 4;

  private static final int MAGIC = 0x706d6673; // "pmfs"
  private static final int INSTANT_BYTES = Long.BYTES + Integer.BYTES;
  private static final int LISTING_BYTES = Integer.BYTES + INSTANT_BYTES;
  private static final int ATTRIBUTES_BYTES =
      4 * Integer.BYTES + 3 * Long.BYTES + 3 * INSTANT_BYTES;
  private static final int NANOS_PER_SECOND = 1_000_000_000;

  private Values() {}

  /** The format of a database and its dataset. */
  record Superblock(int format, String source) {}

  /** What a name leads to; the key holds its directory and bytes. */
  record NameValue(long inode, FileType type, long position, long importToken) {
    DirectoryEntry entry(FileName name) {
      return new DirectoryEntry(position, name, inode, type);
    }
  }

  public static byte[] superblock(Superblock superblock) {
    byte[] source = superblock.source().getBytes(UTF_8);
    return ByteBuffer.allocate(2 * Integer.BYTES + source.length)
        .putInt(MAGIC)
        .putInt(superblock.format())
        .put(source)
        .array();
  }

  /** Decodes any format, so that a message can name it; null if this is not a superblock. */
  public static @Nullable Superblock superblock(byte[] value) {
    ByteBuffer in = ByteBuffer.wrap(value);
    if (in.remaining() < 2 * Integer.BYTES || in.getInt() != MAGIC) {
      return null;
    }
    return new Superblock(in.getInt(), new String(rest(in), UTF_8));
  }

  public static byte[] number(long number) {
    byte[] value = allocate(Long.BYTES);
    body(value).putLong(number);
    return value;
  }

  public static @Nullable Long number(byte[] value) {
    return decode(value, ByteBuffer::getLong);
  }

  static byte[] bytes(byte[] bytes) {
    byte[] value = allocate(bytes.length);
    body(value).put(bytes);
    return value;
  }

  public static byte @Nullable [] content(byte[] value) {
    return decode(value, Values::rest);
  }

  public static byte[] inode(Inode inode) {
    Listing listing = inode.listing();
    FileName name = inode.name();
    int size = 3 * Long.BYTES + Integer.BYTES + 1 + (listing == null ? 0 : LISTING_BYTES);
    byte[] value = allocate(size + ATTRIBUTES_BYTES + name.size());
    ByteBuffer out = body(value);
    out.putLong(inode.identity().device()).putLong(inode.identity().inode());
    out.putLong(inode.parent()).putInt(inode.checkedIn());
    if (listing == null) {
      out.put((byte) 0);
    } else {
      out.put((byte) 1).putInt(listing.session());
      putInstant(out, listing.modificationTime());
    }
    putAttributes(out, inode.attributes());
    out.put(name.raw());
    return value;
  }

  public static @Nullable Inode inode(long number, byte[] value) {
    return decode(
        value,
        in -> {
          FileIdentity identity = new FileIdentity(in.getLong(), in.getLong());
          long parent = in.getLong();
          int checkedIn = in.getInt();
          Listing listing = flag(in.get()) ? new Listing(in.getInt(), instant(in)) : null;
          Attributes attributes = attributes(in);
          FileName name = FileName.wrap(rest(in));
          return new Inode(number, identity, parent, name, checkedIn, listing, attributes);
        });
  }

  public static byte[] name(NameValue name) {
    byte[] value = allocate(3 * Long.BYTES + 1);
    body(value)
        .putLong(name.inode())
        .put((byte) name.type().number())
        .putLong(name.position())
        .putLong(name.importToken());
    return value;
  }

  public static @Nullable NameValue name(byte[] value) {
    return decode(
        value,
        in -> new NameValue(in.getLong(), FileType.ofNumber(in.get()), in.getLong(), in.getLong()));
  }

  static byte[] listed(long inode, FileType type, FileName name) {
    byte[] value = allocate(Long.BYTES + 1 + name.size());
    body(value).putLong(inode).put((byte) type.number()).put(name.raw());
    return value;
  }

  static @Nullable DirectoryEntry listed(long position, byte[] value) {
    return decode(
        value,
        in -> {
          long inode = in.getLong();
          FileType type = FileType.ofNumber(in.get());
          return new DirectoryEntry(position, FileName.wrap(rest(in)), inode, type);
        });
  }

  static byte[] extendedAttributes(Map<FileName, byte[]> attributes) {
    int size = 0;
    for (Map.Entry<FileName, byte[]> attribute : attributes.entrySet()) {
      size += 2 * Integer.BYTES + attribute.getKey().size() + attribute.getValue().length;
    }
    ByteBuffer out = ByteBuffer.allocate(size);
    for (Map.Entry<FileName, byte[]> attribute : attributes.entrySet()) {
      out.putInt(attribute.getKey().size()).put(attribute.getKey().raw());
      out.putInt(attribute.getValue().length).put(attribute.getValue());
    }
    return out.array();
  }

  static @Nullable Map<FileName, byte[]> extendedAttributes(byte[] content) {
    return decode(
        ByteBuffer.wrap(content),
        in -> {
          Map<FileName, byte[]> attributes = new LinkedHashMap<>();
          while (in.hasRemaining()) {
            FileName name = FileName.wrap(next(in, in.getInt()));
            attributes.put(name, next(in, in.getInt()));
          }
          return Collections.unmodifiableMap(attributes);
        });
  }

  /** What the source said of a file that had this change time. */
  static byte[] dated(byte version, Instant changeTime, byte[] content) {
    byte[] value = allocate(version, INSTANT_BYTES + content.length);
    ByteBuffer out = body(value);
    putInstant(out, changeTime);
    out.put(content);
    return value;
  }

  /** The content; null also if it was recorded for another change time. */
  static byte @Nullable [] datedContent(byte version, Instant changeTime, byte[] value) {
    return decode(
        version,
        value,
        in -> {
          boolean isCurrent = instant(in).equals(changeTime);
          byte[] content = rest(in);
          return isCurrent ? content : null;
        });
  }

  public static byte[] copy(CopyRecord copy) {
    Checksums checksums = copy.checksums();
    int fixed = 1 + 2 * Integer.BYTES + 4 * Long.BYTES + INSTANT_BYTES;
    byte[] value = allocate(COPY_VERSION, fixed + checksums.count() * Integer.BYTES);
    ByteBuffer out = body(value);
    out.put((byte) (copy.pinned() ? 1 : 0)).putInt(copy.codec());
    putVersion(out, copy.version());
    out.putLong(copy.storedSize()).putInt(copy.blockSize());
    Extent extent = copy.extent();
    out.putLong(extent == null ? 0 : extent.bundle()).putLong(extent == null ? 0 : extent.offset());
    for (int block = 0; block < checksums.count(); block++) {
      out.putInt(checksums.get(block));
    }
    return value;
  }

  public static @Nullable CopyRecord copy(String tier, byte[] value) {
    return decode(
        COPY_VERSION,
        value,
        in -> {
          boolean pinned = flag(in.get());
          int codec = in.getInt();
          SourceVersion version = new SourceVersion(in.getLong(), instant(in));
          long storedSize = in.getLong();
          int blockSize = in.getInt();
          Extent extent = extent(in, storedSize);
          int[] sums = new int[in.remaining() / Integer.BYTES];
          in.asIntBuffer().get(sums);
          in.position(in.position() + sums.length * Integer.BYTES);
          return new CopyRecord(
              tier, codec, version, storedSize, blockSize, Checksums.of(sums), pinned, extent);
        });
  }

  /** Bundle 0 means that the copy is a file of its own. */
  private static @Nullable Extent extent(ByteBuffer in, long size) {
    long bundle = in.getLong();
    long offset = in.getLong();
    return bundle == 0 && offset == 0 ? null : new Extent(bundle, offset, size);
  }

  private static byte[] allocate(int size) {
    return allocate(VERSION, size);
  }

  private static byte[] allocate(byte version, int size) {
    byte[] value = new byte[1 + size];
    value[0] = version;
    return value;
  }

  private static ByteBuffer body(byte[] value) {
    return ByteBuffer.wrap(value, 1, value.length - 1);
  }

  private static <T> @Nullable T decode(byte[] value, Function<ByteBuffer, T> body) {
    return decode(VERSION, value, body);
  }

  private static <T> @Nullable T decode(byte version, byte[] value, Function<ByteBuffer, T> body) {
    ByteBuffer in = ByteBuffer.wrap(value);
    return in.hasRemaining() && in.get() == version ? decode(in, body) : null;
  }

  private static <T> @Nullable T decode(ByteBuffer in, Function<ByteBuffer, T> body) {
    try {
      T decoded = body.apply(in);
      return in.hasRemaining() ? null : decoded;
    } catch (BufferUnderflowException | IllegalArgumentException | DateTimeException e) {
      return null;
    }
  }

  private static void putVersion(ByteBuffer out, SourceVersion version) {
    out.putLong(version.size());
    putInstant(out, version.modificationTime());
  }

  private static void putInstant(ByteBuffer out, Instant instant) {
    out.putLong(instant.getEpochSecond()).putInt(instant.getNano());
  }

  private static Instant instant(ByteBuffer in) {
    long seconds = in.getLong();
    int nanos = in.getInt();
    if (nanos < 0 || nanos >= NANOS_PER_SECOND) {
      throw new IllegalArgumentException("nanoseconds " + nanos);
    }
    return Instant.ofEpochSecond(seconds, nanos);
  }

  private static void putAttributes(ByteBuffer out, Attributes attributes) {
    out.putInt(attributes.mode()).putInt(attributes.linkCount());
    out.putInt(attributes.uid()).putInt(attributes.gid());
    out.putLong(attributes.device()).putLong(attributes.size()).putLong(attributes.blocks());
    putInstant(out, attributes.accessTime());
    putInstant(out, attributes.modificationTime());
    putInstant(out, attributes.changeTime());
  }

  private static Attributes attributes(ByteBuffer in) {
    int mode = in.getInt();
    FileType.ofMode(mode);
    return new Attributes(
        mode,
        in.getInt(),
        in.getInt(),
        in.getInt(),
        in.getLong(),
        in.getLong(),
        in.getLong(),
        instant(in),
        instant(in),
        instant(in));
  }

  private static boolean flag(byte value) {
    if (value != 0 && value != 1) {
      throw new IllegalArgumentException("flag " + value);
    }
    return value == 1;
  }

  private static byte[] rest(ByteBuffer in) {
    return next(in, in.remaining());
  }

  private static byte[] next(ByteBuffer in, int size) {
    if (size < 0 || size > in.remaining()) {
      throw new BufferUnderflowException();
    }
    byte[] bytes = new byte[size];
    in.get(bytes);
    return bytes;
  }
}
