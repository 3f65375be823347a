package io.pmfs.shards;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.time.Instant;
import java.util.Arrays;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarConstants;
import org.apache.commons.compress.archivers.tar.TarUtils;
import org.apache.commons.compress.archivers.zip.ZipEncoding;
import org.apache.commons.compress.archivers.zip.ZipEncodingHelper;
import org.jspecify.annotations.Nullable;

/**
 * Finds the members of a tar file: ustar, pax, GNU and older formats. Commons Compress parses
 * header blocks. This class finds the next header itself, because it needs names as bytes and
 * offsets. Used by one thread.
 */
final class TarScanner {
  static final int BLOCK_BYTES = 512;

  /**
   * More than this before one member means damage: the attributes of a file take at most 64 KiB.
   */
  private static final int MAX_PAX_BYTES = 8 << 20;

  private static final int MAX_LONG_NAME_BYTES = 64 << 10;

  /** PATH_MAX of linux/limits.h, with its NUL. */
  private static final int MAX_TARGET_BYTES = 4095;

  private static final int PERMISSIONS = 07777;
  private static final int READ_PERMISSIONS = 0444;
  private static final int TYPE_SHIFT = 12;
  private static final long MAX_ID = 0xffff_ffffL;

  /**
   * The owner that the kernel shows for ids that it cannot represent
   * (/proc/sys/kernel/overflowuid).
   */
  private static final int OVERFLOW_ID = 65534;

  private static final FileName TAR = FileName.of(".tar");

  /** Each byte is one char, so that names stay unchanged. */
  private static final ZipEncoding BYTES = ZipEncodingHelper.getZipEncoding(ISO_8859_1.name());

  private final int shard;
  private final String name;
  private final HeaderReader in;
  private final MemberSink sink;

  /**
   * Prepares a scan.
   *
   * @param shard its number, recorded in all members
   * @param name for messages
   */
  TarScanner(int shard, String name, HeaderReader in, MemberSink sink) {
    this.shard = shard;
    this.name = name;
    this.in = in;
    this.sink = sink;
  }

  /**
   * Scans all members.
   *
   * @param directory the directory in which they are shown
   * @param nested whether a member that is itself a tar file is shown as a directory
   */
  void scan(FileName directory, boolean nested) throws ShardException, FsException {
    new Pass(0, in.size(), directory, nested).run();
  }

  /** One tar file: the shard, or a member of it. */
  private final class Pass {
    private final long end;
    private final FileName directory;
    private final boolean nested;
    private long at;
    private PaxHeader global = PaxHeader.NONE;

    /** The pax header for the next member. */
    private @Nullable PaxHeader pax;

    private byte @Nullable [] longName;
    private byte @Nullable [] longLink;

    Pass(long start, long end, FileName directory, boolean nested) {
      this.at = start;
      this.end = end;
      this.directory = directory;
      this.nested = nested;
    }

    void run() throws ShardException, FsException {
      while (at < end) {
        byte[] block = block(at);
        if (isZero(block)) {
          checkComplete();
          warnOfMore();
          return;
        }
        long before = at;
        step(block);
        sink.passed(at - before);
      }
      checkComplete();
      sink.warn(Warning.NO_END, name);
    }

    /**
     * The members before a hole, or of the first of several tar files, are all that is shown. Looks
     * no further than a read: tar files may be padded.
     */
    private void warnOfMore() {
      try {
        int count = (int) Math.min(end - at, HeaderReader.MAX_BYTES);
        if (!isZero(in.read(at, count))) {
          sink.warn(Warning.AFTER_END, name + ": offset " + at);
        }
      } catch (FsException e) {
        // What cannot be read is not shown anyway.
      }
    }

    private void checkComplete() throws ShardException {
      if (pax != null || longName != null || longLink != null) {
        throw damaged(at, "the file ends between the headers of a member");
      }
    }

    private void step(byte[] block) throws ShardException, FsException {
      long position = at;
      try {
        TarArchiveEntry header = parse(block);
        switch (header.getLinkFlag()) {
          case TarConstants.LF_PAX_EXTENDED_HEADER_LC, TarConstants.LF_PAX_EXTENDED_HEADER_UC -> {
            PaxHeader before = pax;
            pax = PaxHeader.parse(content(header, MAX_PAX_BYTES), before == null ? global : before);
          }
          case TarConstants.LF_PAX_GLOBAL_EXTENDED_HEADER ->
              global = PaxHeader.parse(content(header, MAX_PAX_BYTES), global);
          case TarConstants.LF_GNUTYPE_LONGNAME -> longName = text(header);
          case TarConstants.LF_GNUTYPE_LONGLINK -> longLink = text(header);
          default -> member(header, block);
        }
      } catch (IllegalArgumentException e) {
        throw damaged(position, String.valueOf(e.getMessage()));
      }
    }

    private TarArchiveEntry parse(byte[] block) throws ShardException {
      if (!isHeader(block)) {
        throw damaged(at, "there is no tar header");
      }
      try {
        return new TarArchiveEntry(block, BYTES, false);
      } catch (IllegalArgumentException | IOException e) {
        // Without the reason: it would include the field, which may contain anything.
        throw damaged(at, "a tar header has an invalid field");
      }
    }

    private byte[] text(TarArchiveEntry header) throws ShardException, FsException {
      byte[] content = content(header, MAX_LONG_NAME_BYTES);
      int size = 0;
      while (size < content.length && content[size] != 0) {
        size++;
      }
      return Arrays.copyOf(content, size);
    }

    /** Reads the whole content of an extended header and moves past it. */
    private byte[] content(TarArchiveEntry header, int most) throws ShardException, FsException {
      long size = header.getSize();
      if (size > most) {
        throw damaged(at, "an extended header of " + size + " bytes is too long");
      }
      byte[] content = bytes(at + BLOCK_BYTES, (int) size);
      at = padded(at + BLOCK_BYTES, size);
      return content;
    }

    private void member(TarArchiveEntry header, byte[] block) throws ShardException, FsException {
      PaxHeader local = pax;
      byte[] ownName = longName;
      byte[] ownLink = longLink;
      pax = null;
      longName = null;
      longLink = null;
      PaxHeader records = local == null ? global : local;
      long position = at;
      byte type = header.getLinkFlag();
      long stored = hasContent(type) ? records.number("size", header.getSize()) : 0;
      Content content = content(header, block, records, stored);
      byte[] path = first(records.bytes("GNU.sparse.name"), records.bytes("path"), ownName);
      at = padded(content.data, content.stored);
      if (type == TarConstants.LF_MULTIVOLUME || type == 'V' || type == 'N') {
        sink.warn(Warning.UNSUPPORTED, name + ": offset " + position);
        return;
      }
      byte[] text = path == null ? header.getName().getBytes(ISO_8859_1) : path;
      byte[] link = first(records.bytes("linkpath"), ownLink, null);
      byte[] target = link == null ? header.getLinkName().getBytes(ISO_8859_1) : link;
      add(header, records, position, content, text, target);
    }

    private void add(
        TarArchiveEntry header,
        PaxHeader records,
        long position,
        Content content,
        byte[] text,
        byte[] link)
        throws ShardException, FsException {
      FileName path = MemberPath.of(text);
      FileType type = type(header.getLinkFlag(), text);
      FileName target = target(type, link);
      if (path == null || target == null || (path.size() == 0 && type != FileType.DIRECTORY)) {
        sink.warn(Warning.BAD_NAME, name + ": " + new String(text, ISO_8859_1));
        return;
      }
      boolean device = type == FileType.CHARACTER_DEVICE || type == FileType.BLOCK_DEVICE;
      boolean regular = type == FileType.REGULAR;
      long size = regular ? content.size : type == FileType.SYMBOLIC_LINK ? target.size() : 0;
      Instant modified = records.time("mtime", header.getLastModifiedTime().toInstant());
      ShardMember member =
          new ShardMember(
              (type == null ? 0 : type.number() << TYPE_SHIFT) | (header.getMode() & PERMISSIONS),
              id(records.number("uid", header.getLongUserId() & MAX_ID)),
              id(records.number("gid", header.getLongGroupId() & MAX_ID)),
              device ? device(header.getDevMajor(), header.getDevMinor()) : 0,
              size,
              modified,
              shard,
              position,
              content.data,
              false,
              target,
              regular ? content.extents : Extents.whole(0));
      emit(MemberPath.below(directory, path), member);
    }

    /**
     * The target of a link: unchanged for a symbolic link, the path of the member for a hard link.
     */
    private @Nullable FileName target(@Nullable FileType type, byte[] link) {
      if (type != null && type != FileType.SYMBOLIC_LINK) {
        return ShardMember.NO_TARGET;
      }
      if (type == FileType.SYMBOLIC_LINK) {
        boolean possible = link.length > 0 && link.length <= MAX_TARGET_BYTES;
        return possible && !contains(link, 0) ? FileName.of(link) : null;
      }
      FileName path = MemberPath.of(link);
      return path == null ? null : MemberPath.below(directory, path);
    }

    private void emit(FileName path, ShardMember member) throws ShardException, FsException {
      FileName stem = nested && member.isRegular() ? stem(path) : null;
      if (stem == null) {
        sink.member(path, member);
      } else if (!member.extents().isWhole(member.size()) || !startsLikeTar(member)) {
        sink.warn(Warning.NOT_NESTED, name + ": " + path);
        sink.member(path, member);
      } else {
        sink.member(stem, directoryOf(member));
        new Pass(member.data(), member.data() + member.size(), stem, false).run();
      }
    }

    private boolean startsLikeTar(ShardMember member) throws FsException, ShardException {
      if (member.size() == 0) {
        return true;
      }
      if (member.size() < BLOCK_BYTES) {
        return false;
      }
      byte[] block = bytes(member.data(), BLOCK_BYTES);
      return isZero(block) || isHeader(block);
    }

    private Content content(TarArchiveEntry header, byte[] block, PaxHeader records, long stored)
        throws ShardException, FsException {
      long data = at + BLOCK_BYTES;
      if (header.getLinkFlag() == TarConstants.LF_GNUTYPE_SPARSE) {
        OldSparse sparse = new OldSparse(block);
        while (sparse.isContinued()) {
          sparse.add(block(data));
          data += BLOCK_BYTES;
        }
        return sized(data, stored, sparse.size(), sparse.pieces());
      }
      if (records.number("GNU.sparse.major", 0) == 1) {
        return sparseWithMap(records, data, stored);
      }
      Extents.Builder pieces = records.extents();
      if (pieces != null) {
        return sized(data, stored, records.number("GNU.sparse.size", stored), pieces);
      }
      checkFits(data, stored);
      return new Content(data, stored, stored, Extents.whole(stored));
    }

    /** Format 1.0: decimal numbers, one per line, precede the data and fill whole blocks. */
    private Content sparseWithMap(PaxHeader records, long data, long stored)
        throws ShardException, FsException {
      checkFits(data, stored);
      SparseMap map = new SparseMap(in, data, data + stored);
      Extents.Builder pieces = map.parse();
      long begin = padded(data, map.end() - data);
      long size = records.number("GNU.sparse.realsize", records.number("GNU.sparse.size", 0));
      return sized(begin, stored - (begin - data), size, pieces);
    }

    private Content sized(long data, long stored, long size, Extents.Builder pieces)
        throws ShardException {
      checkFits(data, stored);
      Extents extents = pieces.build(size);
      if (extents.dataBytes() > stored) {
        throw damaged(at, "a sparse member has less data than its map says");
      }
      return new Content(data, stored, size, extents);
    }

    private void checkFits(long data, long stored) throws ShardException {
      if (stored < 0 || stored > end - data) {
        throw damaged(at, "a member of " + stored + " bytes is longer than the rest of the file");
      }
    }

    private byte[] block(long offset) throws ShardException, FsException {
      return bytes(offset, BLOCK_BYTES);
    }

    private byte[] bytes(long offset, int count) throws ShardException, FsException {
      if (count > end - offset) {
        throw damaged(at, "the file ends in the middle of a header");
      }
      byte[] bytes = new byte[count];
      for (int done = 0; done < count; ) {
        byte[] part = in.read(offset + done, Math.min(count - done, HeaderReader.MAX_BYTES));
        if (part.length == 0) {
          throw damaged(at, "the file became shorter while it was read");
        }
        System.arraycopy(part, 0, bytes, done, part.length);
        done += part.length;
      }
      return bytes;
    }

    /** The offset of the block after content; the last block need not be full. */
    private long padded(long data, long size) {
      long blocks = (size + BLOCK_BYTES - 1) / BLOCK_BYTES;
      return Math.min(end, data + blocks * BLOCK_BYTES);
    }

    private ShardException damaged(long offset, String why) {
      return new ShardException(name + ": not a valid tar file: at offset " + offset + ": " + why);
    }
  }

  /**
   * The content of a member: its offset, its size in the tar file, the size of the file and its
   * extents.
   */
  private record Content(long data, long stored, long size, Extents extents) {}

  private static boolean hasContent(byte type) {
    return type < TarConstants.LF_LINK || type > TarConstants.LF_FIFO;
  }

  /** The type of a file; null for a hard link. */
  private static @Nullable FileType type(byte flag, byte[] text) {
    return switch (flag) {
      case TarConstants.LF_LINK -> null;
      case TarConstants.LF_SYMLINK -> FileType.SYMBOLIC_LINK;
      case TarConstants.LF_CHR -> FileType.CHARACTER_DEVICE;
      case TarConstants.LF_BLK -> FileType.BLOCK_DEVICE;
      case TarConstants.LF_FIFO -> FileType.FIFO;
      case TarConstants.LF_DIR, 'D' -> FileType.DIRECTORY;
      // Before POSIX there were no other types, and a trailing slash marked a directory.
      case TarConstants.LF_NORMAL, TarConstants.LF_OLDNORM ->
          text.length > 0 && text[text.length - 1] == '/' ? FileType.DIRECTORY : FileType.REGULAR;
      default -> FileType.REGULAR;
    };
  }

  private static int id(long id) {
    return id >= 0 && id <= MAX_ID ? (int) id : OVERFLOW_ID;
  }

  /** Composes a dev_t as glibc's makedev(3) does. */
  private static long device(long major, long minor) {
    return (minor & 0xff)
        | ((major & 0xfff) << 8)
        | ((minor & 0xffff_ff00L) << 12)
        | ((major & 0xffff_f000L) << 32);
  }

  /** The path of a nested tar file's directory; null if its name is not that of a tar file. */
  private static @Nullable FileName stem(FileName path) {
    byte[] bytes = path.bytes();
    int size = bytes.length - TAR.size();
    boolean named = size > 0 && bytes[size - 1] != '/';
    return named && Arrays.equals(Arrays.copyOfRange(bytes, size, bytes.length), TAR.bytes())
        ? FileName.of(Arrays.copyOf(bytes, size))
        : null;
  }

  /** Users who may read a nested tar file may search its directory. */
  private static ShardMember directoryOf(ShardMember tar) {
    int permissions = tar.mode() & PERMISSIONS;
    return new ShardMember(
        FileType.DIRECTORY.number() << TYPE_SHIFT
            | permissions
            | (permissions & READ_PERMISSIONS) >> 2,
        tar.uid(),
        tar.gid(),
        0,
        0,
        tar.modificationTime(),
        tar.shard(),
        tar.position(),
        tar.data(),
        false,
        ShardMember.NO_TARGET,
        Extents.whole(0));
  }

  private static boolean isHeader(byte[] block) {
    try {
      return TarUtils.verifyCheckSum(block);
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  private static boolean isZero(byte[] block) {
    for (byte b : block) {
      if (b != 0) {
        return false;
      }
    }
    return true;
  }

  private static boolean contains(byte[] bytes, int wanted) {
    for (byte b : bytes) {
      if (b == wanted) {
        return true;
      }
    }
    return false;
  }

  private static byte @Nullable [] first(
      byte @Nullable [] a, byte @Nullable [] b, byte @Nullable [] c) {
    return a != null ? a : b != null ? b : c;
  }
}
