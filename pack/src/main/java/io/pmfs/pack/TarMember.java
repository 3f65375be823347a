package io.pmfs.pack;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.archivers.tar.TarConstants;

/**
 * The bytes before the content of one file in a shard: a ustar header, preceded by pax records for
 * what it cannot hold. It contains only data from the source, so that the same source gives the
 * same bytes.
 *
 * <p>Names in UTF-8 that are long or not ASCII are pax records, as POSIX specifies. Values of pax
 * records are UTF-8. A name that is not UTF-8 is stored unchanged in the header or, if it is long,
 * in GNU tar's record for long names, which every tar in use reads.
 *
 * @param path as in tar: a directory's path ends with a slash
 * @param type a type flag of {@link TarConstants}
 * @param target of a link; empty for other types
 * @param size bytes that follow
 */
record TarMember(FileName path, byte type, FileName target, Attributes attributes, long size) {
  static final int BLOCK = 512;

  /** Two blocks of zeros. */
  static final int END_BYTES = 2 * BLOCK;

  private static final String PAX_NAME = "././@PaxHeader";
  private static final int PERMISSIONS = 07777;
  private static final FileTime NO_TIME = FileTime.fromMillis(0);

  /** The stream for members: each char of a name is one byte. */
  static TarArchiveOutputStream stream(java.io.OutputStream to) {
    TarArchiveOutputStream tar = new TarArchiveOutputStream(to, "ISO-8859-1");
    tar.setLongFileMode(TarArchiveOutputStream.LONGFILE_GNU);
    tar.setBigNumberMode(TarArchiveOutputStream.BIGNUMBER_STAR);
    return tar;
  }

  /** The size of the headers before the content. */
  long headerBytes() {
    byte[] records = records();
    return BLOCK
        + (records.length == 0 ? 0 : BLOCK + padded(records.length))
        + longNameBytes(path)
        + longNameBytes(target);
  }

  /** The size of content in a shard, padded to whole blocks. */
  static long padded(long size) {
    return (size + BLOCK - 1) / BLOCK * BLOCK;
  }

  private static long longNameBytes(FileName name) {
    return isLong(name) && !isUtf8(name) ? BLOCK + padded(name.size() + 1) : 0;
  }

  /** Starts this member; the caller writes its content and closes the entry. */
  void put(TarArchiveOutputStream tar) throws IOException {
    byte[] records = records();
    if (records.length > 0) {
      TarArchiveEntry pax = new TarArchiveEntry(PAX_NAME, TarConstants.LF_PAX_EXTENDED_HEADER_LC);
      pax.setLastModifiedTime(NO_TIME);
      pax.setMode(0644);
      pax.setSize(records.length);
      tar.putArchiveEntry(pax);
      tar.write(records);
      tar.closeArchiveEntry();
    }
    TarArchiveEntry entry = new TarArchiveEntry(inHeader(path), type, true);
    entry.setLinkName(inHeader(target));
    entry.setMode(attributes.mode() & PERMISSIONS);
    entry.setUserId(Integer.toUnsignedLong(attributes.uid()));
    entry.setGroupId(Integer.toUnsignedLong(attributes.gid()));
    entry.setLastModifiedTime(
        FileTime.from(Instant.ofEpochSecond(attributes.modificationTime().getEpochSecond())));
    entry.setSize(size);
    if (type == TarConstants.LF_CHR || type == TarConstants.LF_BLK) {
      entry.setDevMajor(major(attributes.device()));
      entry.setDevMinor(minor(attributes.device()));
    }
    tar.putArchiveEntry(entry);
  }

  /** The name for the header; if the name is in a pax record, only a readable substitute. */
  private static String inHeader(FileName name) {
    String text = name.toLatin1();
    if (!isLong(name) || !isUtf8(name)) {
      return text;
    }
    int end = TarConstants.NAMELEN - 1;
    while (text.charAt(end - 1) == '/') {
      end--; // or it would look like a directory
    }
    return text.substring(0, end);
  }

  private byte[] records() {
    ByteArrayOutputStream records = new ByteArrayOutputStream();
    addName(records, "path", path);
    addName(records, "linkpath", target);
    addNumber(records, "size", size, TarConstants.MAXSIZE);
    addNumber(records, "uid", Integer.toUnsignedLong(attributes.uid()), TarConstants.MAXID);
    addNumber(records, "gid", Integer.toUnsignedLong(attributes.gid()), TarConstants.MAXID);
    Instant time = attributes.modificationTime();
    if (time.getNano() != 0
        || time.getEpochSecond() < 0
        || time.getEpochSecond() > TarConstants.MAXSIZE) {
      add(records, "mtime", decimal(time).getBytes(US_ASCII));
    }
    return records.toByteArray();
  }

  private static void addName(ByteArrayOutputStream records, String key, FileName name) {
    if ((isLong(name) || !isAscii(name)) && isUtf8(name)) {
      add(records, key, name.bytes());
    }
  }

  private static void addNumber(ByteArrayOutputStream records, String key, long number, long max) {
    if (number > max) {
      add(records, key, Long.toString(number).getBytes(US_ASCII));
    }
  }

  /** Appends {@code LENGTH KEY=VALUE\n}, where the length counts its own digits too. */
  private static void add(ByteArrayOutputStream records, String key, byte[] value) {
    int rest = key.length() + value.length + 3;
    int length = rest + Integer.toString(rest).length();
    if (Integer.toString(length).length() > Integer.toString(rest).length()) {
      length++;
    }
    records.writeBytes((length + " " + key + "=").getBytes(US_ASCII));
    records.writeBytes(value);
    records.write('\n');
  }

  /** Seconds with as many decimals as needed. */
  private static String decimal(Instant time) {
    return new java.math.BigDecimal(time.getEpochSecond())
        .add(java.math.BigDecimal.valueOf(time.getNano(), 9))
        .stripTrailingZeros()
        .toPlainString();
  }

  private static boolean isLong(FileName name) {
    return name.size() >= TarConstants.NAMELEN;
  }

  private static boolean isAscii(FileName name) {
    return name.toLatin1().chars().allMatch(c -> c < 0x80);
  }

  private static boolean isUtf8(FileName name) {
    if (isAscii(name)) {
      return true;
    }
    try {
      UTF_8.newDecoder().decode(ByteBuffer.wrap(name.bytes()));
      return true;
    } catch (CharacterCodingException e) {
      return false;
    }
  }

  // Splits a dev_t as glibc's major(3) and minor(3) do.

  private static int major(long device) {
    return (int) ((device >>> 8 & 0xfff) | (device >>> 32 & 0xfffff000L));
  }

  private static int minor(long device) {
    return (int) ((device & 0xff) | (device >>> 12 & 0xffffff00L));
  }
}
