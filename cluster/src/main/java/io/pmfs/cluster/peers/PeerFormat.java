package io.pmfs.cluster.peers;

import static java.util.stream.Collectors.joining;

import com.google.common.base.Splitter;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.DefaultHttpHeadersFactory;
import io.netty.handler.codec.http.HttpHeaders;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.source.SourceStatus;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The only place that encodes and decodes the bodies and headers that peers exchange; the layouts
 * are in docs/formats.md. Decoding throws IllegalArgumentException for malformed input, and nothing
 * else.
 */
public final class PeerFormat {
  /** Bytes of {@link #putStatus}. */
  static final int STATUS_BYTES = 4 * Integer.BYTES + 5 * Long.BYTES + 3 * 12;

  /** The size of the head of a file in a batch: kind, attributes, size and checksum. */
  public static final int FILE_HEAD_BYTES = 1 + STATUS_BYTES + 2 * Integer.BYTES;

  /**
   * Target, below /v1/, of the interrupt of a writable mount's operation: it waits for no other.
   */
  public static final String INTERRUPT = "outputs/interrupt";

  /** Request header: the node that asks. */
  public static final String NODE = "Pmfs-Node";

  /** Request header: blocks that the asker would read next. */
  public static final String WANTED = "Pmfs-Wanted";

  /** Answer header: nodes that may have copies of the file. */
  public static final String HOLDERS = "Pmfs-Holders";

  private static final int NANOS_PER_SECOND = 1_000_000_000;

  /** NAME_MAX and XATTR_NAME_MAX of Linux. */
  private static final int NAME_MAX = 255;

  /** PATH_MAX without its NUL: no symbolic link has a longer target. */
  private static final int TARGET_MAX = 4095;

  /** The most attributes of a file; Linux bounds each by XATTR_NAME_MAX and XATTR_SIZE_MAX. */
  private static final int MAX_ATTRIBUTES = 65_536;

  private PeerFormat() {}

  /** Headers without any yet. */
  public static HttpHeaders headers() {
    return DefaultHttpHeadersFactory.headersFactory().newHeaders();
  }

  /** One file of a batch, read whole. */
  public record BatchItem(FileName path, SourceVersion expected, boolean onlyCopies) {}

  public static void putStatus(ByteBuf out, SourceStatus status) {
    Attributes attributes = status.attributes();
    out.writeLong(status.identity().device()).writeLong(status.identity().inode());
    out.writeInt(attributes.mode()).writeInt(attributes.linkCount());
    out.writeInt(attributes.uid()).writeInt(attributes.gid());
    out.writeLong(attributes.device()).writeLong(attributes.size()).writeLong(attributes.blocks());
    putInstant(out, attributes.accessTime());
    putInstant(out, attributes.modificationTime());
    putInstant(out, attributes.changeTime());
  }

  public static SourceStatus status(ByteBuf in) {
    return decode(in, bytes -> known(readStatus(bytes)));
  }

  private static SourceStatus known(SourceStatus status) {
    if (status.attributes().type() == FileType.UNKNOWN) {
      throw new IllegalArgumentException("a file has no type");
    }
    return status;
  }

  private static SourceStatus readStatus(ByteBuf in) {
    FileIdentity identity = new FileIdentity(in.readLong(), in.readLong());
    int mode = in.readInt();
    FileType.ofMode(mode);
    Attributes attributes =
        new Attributes(
            mode,
            in.readInt(),
            in.readInt(),
            in.readInt(),
            in.readLong(),
            size(in.readLong()),
            in.readLong(),
            instant(in),
            instant(in),
            instant(in));
    return new SourceStatus(identity, attributes);
  }

  /** A status as one header's value. */
  public static String statusHeader(SourceStatus status) {
    ByteBuf out = Unpooled.buffer(STATUS_BYTES, STATUS_BYTES);
    putStatus(out, status);
    return Base64.getEncoder().encodeToString(out.array());
  }

  public static SourceStatus statusHeader(@Nullable String value) {
    if (value == null) {
      throw new IllegalArgumentException("attributes are missing");
    }
    ByteBuf in = Unpooled.wrappedBuffer(Base64.getDecoder().decode(value));
    if (in.readableBytes() != STATUS_BYTES) {
      throw new IllegalArgumentException("attributes have the wrong size");
    }
    return status(in);
  }

  public static void putEntry(ByteBuf out, SourceEntry entry) {
    out.writeShort(entry.name().size()).writeBytes(entry.name().bytes());
    putStatus(out, new SourceStatus(entry.identity(), entry.attributes()));
  }

  public static SourceEntry entry(ByteBuf in) {
    return decode(
        in,
        bytes -> {
          FileName name = FileName.of(next(bytes, bytes.readUnsignedShort()));
          if (!name.isEntry() || name.size() > NAME_MAX) {
            throw new IllegalArgumentException("a directory entry has an invalid name");
          }
          SourceStatus status = readStatus(bytes);
          SourceEntry unknown = SourceEntry.unknown(name);
          boolean isUnknown =
              status.equals(new SourceStatus(unknown.identity(), unknown.attributes()));
          return isUnknown
              ? unknown
              : new SourceEntry(name, known(status).identity(), status.attributes());
        });
  }

  public static void putAttributes(ByteBuf out, Map<FileName, byte[]> attributes) {
    out.writeInt(attributes.size());
    attributes.forEach(
        (name, value) -> {
          out.writeInt(name.size()).writeBytes(name.bytes());
          out.writeInt(value.length).writeBytes(value);
        });
  }

  public static Map<FileName, byte[]> attributes(ByteBuf in) {
    return decode(
        in,
        bytes -> {
          int count = bounded(bytes.readInt(), MAX_ATTRIBUTES);
          Map<FileName, byte[]> attributes = new LinkedHashMap<>();
          for (int i = 0; i < count; i++) {
            FileName name = FileName.of(next(bytes, bounded(bytes.readInt(), NAME_MAX)));
            if (name.size() == 0 || hasNul(name)) {
              throw new IllegalArgumentException("an attribute has an invalid name");
            }
            attributes.put(name, next(bytes, bytes.readInt()));
          }
          return attributes;
        });
  }

  public static FileName target(ByteBuf in) {
    FileName target = FileName.of(next(in, bounded(in.readableBytes(), TARGET_MAX)));
    if (target.size() == 0 || hasNul(target)) {
      throw new IllegalArgumentException("not a valid link target");
    }
    return target;
  }

  private static boolean hasNul(FileName name) {
    return name.toLatin1().indexOf('\0') >= 0;
  }

  public static void putBatch(ByteBuf out, List<BatchItem> items) {
    out.writeShort(items.size());
    for (BatchItem item : items) {
      out.writeByte(item.onlyCopies() ? 1 : 0);
      out.writeLong(item.expected().size());
      putInstant(out, item.expected().modificationTime());
      out.writeShort(item.path().size()).writeBytes(item.path().bytes());
    }
  }

  public static List<BatchItem> batch(ByteBuf in, int maxItems) {
    return decode(
        in,
        bytes -> {
          int count = bounded(bytes.readUnsignedShort(), maxItems);
          List<BatchItem> items = new ArrayList<>(count);
          for (int i = 0; i < count; i++) {
            boolean onlyCopies = bounded(bytes.readUnsignedByte(), 1) == 1;
            SourceVersion expected = new SourceVersion(size(bytes.readLong()), instant(bytes));
            items.add(
                new BatchItem(
                    FileName.of(next(bytes, bytes.readUnsignedShort())), expected, onlyCopies));
          }
          if (bytes.isReadable()) {
            throw new IllegalArgumentException("bytes follow the last item");
          }
          return items;
        });
  }

  public static void putBlocks(ByteBuf out, HeldBlocks held) {
    out.writeInt(held.unit());
    byte[] units = held.units().toByteArray();
    out.writeShort(units.length).writeBytes(units);
    out.writeInt(held.askers());
    out.writeByte(held.others().size());
    for (UUID id : held.others()) {
      out.writeLong(id.getMostSignificantBits()).writeLong(id.getLeastSignificantBits());
    }
    out.writeByte(held.granted().size());
    held.granted().forEach(out::writeInt);
  }

  public static HeldBlocks blocks(ByteBuf in) {
    return decode(
        in,
        bytes -> {
          int unit = bounded(bytes.readInt(), Integer.MAX_VALUE);
          if (Integer.bitCount(unit) != 1) {
            throw new IllegalArgumentException("the number of blocks is not a power of two");
          }
          int size = bounded(bytes.readUnsignedShort(), HeldBlocks.MOST_UNITS / Byte.SIZE);
          BitSet units = BitSet.valueOf(next(bytes, size));
          int askers = bounded(bytes.readInt(), Integer.MAX_VALUE);
          List<UUID> others = new ArrayList<>();
          for (int left = bounded(bytes.readUnsignedByte(), HeldBlocks.MOST_LISTED);
              left > 0;
              left--) {
            others.add(new UUID(bytes.readLong(), bytes.readLong()));
          }
          List<Integer> granted = new ArrayList<>();
          for (int left = bounded(bytes.readUnsignedByte(), HeldBlocks.MOST_LISTED);
              left > 0;
              left--) {
            granted.add(bounded(bytes.readInt(), Integer.MAX_VALUE));
          }
          return new HeldBlocks(unit, units, askers, others, granted);
        });
  }

  /** BLOCK,...;BLOCK,...: first the blocks that no node is known to have. */
  public static String wanted(HeldBlocks.Wanted wanted) {
    return numbers(wanted.missed()) + ";" + numbers(wanted.more());
  }

  private static String numbers(List<Integer> blocks) {
    return blocks.stream().map(String::valueOf).collect(joining(","));
  }

  public static HeldBlocks.Wanted wanted(String text) {
    int middle = text.indexOf(';');
    if (middle < 0) {
      throw new IllegalArgumentException("there must be two lists");
    }
    return new HeldBlocks.Wanted(
        numbers(text.substring(0, middle)), numbers(text.substring(middle + 1)));
  }

  private static List<Integer> numbers(String text) {
    List<Integer> blocks =
        Splitter.on(',')
            .omitEmptyStrings()
            .splitToStream(text)
            .map(number -> bounded(Integer.parseInt(number), Integer.MAX_VALUE))
            .toList();
    bounded(blocks.size(), HeldBlocks.MOST_LISTED);
    return blocks;
  }

  /** SIZE.SECONDS.NANOS. */
  public static String version(SourceVersion version) {
    Instant time = version.modificationTime();
    return version.size() + "." + time.getEpochSecond() + "." + time.getNano();
  }

  public static SourceVersion version(String text) {
    String[] parts = text.split("\\.", -1);
    if (parts.length != 3) {
      throw new IllegalArgumentException("a version must be SIZE.SECONDS.NANOS");
    }
    try {
      int nanos = bounded(Integer.parseInt(parts[2]), NANOS_PER_SECOND - 1);
      Instant time = Instant.ofEpochSecond(Long.parseLong(parts[1]), nanos);
      return new SourceVersion(size(Long.parseLong(parts[0])), time);
    } catch (DateTimeException e) {
      throw new IllegalArgumentException("the time is out of range", e);
    }
  }

  /** A checksum in headers. */
  public static String hex(int checksum) {
    return HexFormat.of().toHexDigits(checksum);
  }

  private static void putInstant(ByteBuf out, Instant instant) {
    out.writeLong(instant.getEpochSecond()).writeInt(instant.getNano());
  }

  private static Instant instant(ByteBuf in) {
    long seconds = in.readLong();
    return Instant.ofEpochSecond(seconds, bounded(in.readInt(), NANOS_PER_SECOND - 1));
  }

  private static int bounded(int number, int limit) {
    if (number < 0 || number > limit) {
      throw new IllegalArgumentException("the number " + number + " is out of range");
    }
    return number;
  }

  private static long size(long size) {
    if (size < 0) {
      throw new IllegalArgumentException("the size " + size + " is negative");
    }
    return size;
  }

  private static byte[] next(ByteBuf in, int size) {
    byte[] bytes = new byte[bounded(size, in.readableBytes())];
    in.readBytes(bytes);
    return bytes;
  }

  private static <T> T decode(ByteBuf in, Function<ByteBuf, T> body) {
    try {
      return body.apply(in);
    } catch (IndexOutOfBoundsException | DateTimeException e) {
      throw new IllegalArgumentException("the data is truncated or has invalid fields", e);
    }
  }
}
