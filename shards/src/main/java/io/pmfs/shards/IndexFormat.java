package io.pmfs.shards;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.Arrays;

/**
 * Encodes and decodes everything in an index. Numbers are big-endian. The layout is in
 * docs/formats.md.
 */
final class IndexFormat {
  static final int FORMAT = 1;

  /** Kinds of keys: the first byte, in the order of the table. */
  static final byte SHARD = 1;

  static final byte MEMBER = 2;
  static final byte ORDER = 3;
  static final byte SUMMARY = 4;

  static final byte[] SUMMARY_KEY = {SUMMARY};

  private static final int MAGIC = 0x706d6678; // "pmfx"
  private static final byte LINKED = 1;
  private static final byte SPARSE = 2;
  private static final int NANOS_PER_SECOND = 1_000_000_000;
  private static final int INSTANT_BYTES = Long.BYTES + Integer.BYTES;
  private static final int MEMBER_BYTES = 1 + 4 * Integer.BYTES + 4 * Long.BYTES + INSTANT_BYTES;

  private IndexFormat() {}

  /**
   * The key of a path: each of its names preceded by NUL, which no name contains. So a directory
   * comes immediately before everything below it.
   */
  static byte[] memberKey(FileName path) {
    if (path.size() == 0) {
      return new byte[] {MEMBER};
    }
    byte[] bytes = path.bytes();
    byte[] key = new byte[bytes.length + 2];
    key[0] = MEMBER;
    for (int i = 0; i < bytes.length; i++) {
      key[i + 2] = bytes[i] == '/' ? 0 : bytes[i];
    }
    return key;
  }

  static FileName path(byte[] memberKey) {
    byte[] path = Arrays.copyOfRange(memberKey, Math.min(2, memberKey.length), memberKey.length);
    for (int i = 0; i < path.length; i++) {
      path[i] = path[i] == 0 ? (byte) '/' : path[i];
    }
    return FileName.of(path);
  }

  static byte[] shardKey(int number) {
    return ByteBuffer.allocate(1 + Integer.BYTES).put(SHARD).putInt(number).array();
  }

  /** The common prefix of the keys of all names of a file; sorts by shard and position. */
  static byte[] orderKey(int shard, long position) {
    return ByteBuffer.allocate(1 + Integer.BYTES + Long.BYTES)
        .put(ORDER)
        .putInt(shard)
        .putLong(position)
        .array();
  }

  static byte[] orderKey(int shard, long position, byte[] memberKey) {
    byte[] prefix = orderKey(shard, position);
    byte[] key = Arrays.copyOf(prefix, prefix.length + memberKey.length);
    System.arraycopy(memberKey, 0, key, prefix.length, memberKey.length);
    return key;
  }

  static long position(byte[] orderKey) {
    return ByteBuffer.wrap(orderKey).getLong(1 + Integer.BYTES);
  }

  static int shard(byte[] orderKey) {
    return ByteBuffer.wrap(orderKey).getInt(1);
  }

  static FileName pathOfOrder(byte[] orderKey) {
    return path(Arrays.copyOfRange(orderKey, 1 + Integer.BYTES + Long.BYTES, orderKey.length));
  }

  static byte[] order(FileType type) {
    return new byte[] {(byte) type.number()};
  }

  static boolean isRegular(byte[] order) {
    return order.length == 1 && order[0] == FileType.REGULAR.number();
  }

  static byte[] member(ShardMember member) {
    Extents extents = member.extents();
    boolean sparse = member.isRegular() && !extents.isWhole(member.size());
    int rest = sparse ? 2 * Long.BYTES * extents.count() : member.target().size();
    ByteBuffer out = ByteBuffer.allocate(MEMBER_BYTES + rest);
    out.put((byte) ((member.linked() ? LINKED : 0) | (sparse ? SPARSE : 0)));
    out.putInt(member.mode()).putInt(member.uid()).putInt(member.gid());
    out.putLong(member.device()).putLong(member.size());
    putInstant(out, member.modificationTime());
    out.putInt(member.shard()).putLong(member.position()).putLong(member.data());
    if (sparse) {
      for (int i = 0; i < extents.count(); i++) {
        out.putLong(extents.offset(i)).putLong(extents.size(i));
      }
    } else {
      out.put(member.target().bytes());
    }
    return out.array();
  }

  static ShardMember member(byte[] value) throws IOException {
    ByteBuffer in = ByteBuffer.wrap(value);
    try {
      byte flags = in.get();
      int mode = in.getInt();
      int uid = in.getInt();
      int gid = in.getInt();
      long device = in.getLong();
      long size = in.getLong();
      Instant modified = instant(in);
      int shard = in.getInt();
      long position = in.getLong();
      long data = in.getLong();
      Extents extents = Extents.whole(0);
      FileName target = ShardMember.NO_TARGET;
      if ((flags & SPARSE) != 0) {
        Extents.Builder pieces = new Extents.Builder();
        while (in.hasRemaining()) {
          pieces.add(in.getLong(), in.getLong());
        }
        extents = pieces.build(size);
      } else {
        byte[] rest = new byte[in.remaining()];
        in.get(rest);
        target = FileName.of(rest);
        extents = Extents.whole(size);
      }
      return new ShardMember(
          mode,
          uid,
          gid,
          device,
          size,
          modified,
          shard,
          position,
          data,
          (flags & LINKED) != 0,
          target,
          extents);
    } catch (BufferUnderflowException | IllegalArgumentException | DateTimeException e) {
      throw impossible(e);
    }
  }

  static byte[] shard(Shard shard) {
    ByteBuffer out =
        ByteBuffer.allocate(Long.BYTES + INSTANT_BYTES + 2 * Integer.BYTES + shard.name().size());
    out.putLong(shard.size());
    putInstant(out, shard.modificationTime());
    out.putInt(shard.uid()).putInt(shard.gid());
    return out.put(shard.name().bytes()).array();
  }

  static Shard shard(int number, byte[] value) throws IOException {
    ByteBuffer in = ByteBuffer.wrap(value);
    try {
      long size = in.getLong();
      Instant modified = instant(in);
      int uid = in.getInt();
      int gid = in.getInt();
      byte[] name = new byte[in.remaining()];
      in.get(name);
      return new Shard(number, FileName.of(name), size, modified, uid, gid);
    } catch (BufferUnderflowException | DateTimeException e) {
      throw impossible(e);
    }
  }

  static byte[] summary(IndexSummary summary) {
    return ByteBuffer.allocate(3 * Integer.BYTES + 2 + 2 * Long.BYTES)
        .putInt(MAGIC)
        .putInt(FORMAT)
        .put((byte) (summary.form().merged() ? 1 : 0))
        .put((byte) (summary.form().nested() ? 1 : 0))
        .putInt(summary.shards())
        .putLong(summary.members())
        .putLong(summary.warnings())
        .array();
  }

  /** Decodes a summary of this format; throws IOException for any other, as for a damaged table. */
  static IndexSummary summary(byte[] value) throws IOException {
    ByteBuffer in = ByteBuffer.wrap(value);
    try {
      if (in.getInt() != MAGIC || in.getInt() != FORMAT) {
        throw new IOException("the index has another format");
      }
      IndexForm form = new IndexForm(in.get() == 1, in.get() == 1);
      return new IndexSummary(form, in.getInt(), in.getLong(), in.getLong());
    } catch (BufferUnderflowException e) {
      throw impossible(e);
    }
  }

  private static void putInstant(ByteBuffer out, Instant instant) {
    out.putLong(instant.getEpochSecond()).putInt(instant.getNano());
  }

  private static Instant instant(ByteBuffer in) {
    long seconds = in.getLong();
    int nanos = in.getInt();
    if (nanos < 0 || nanos >= NANOS_PER_SECOND) {
      throw new DateTimeException("nanoseconds " + nanos);
    }
    return Instant.ofEpochSecond(seconds, nanos);
  }

  private static IOException impossible(RuntimeException e) {
    return new IOException("the index has an impossible value: " + e.getMessage(), e);
  }
}
