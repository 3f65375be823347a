package io.pmfs.shards;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarConstants;
import org.apache.commons.compress.archivers.zip.ZipEncodingHelper;

/** A tar file built block by block, valid or not. Texts are bytes, one char each. */
final class Tar {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();

  Tar file(String name, String content) {
    return add(TarConstants.LF_NORMAL, name, "", content.length()).data(content);
  }

  Tar directory(String name) {
    return add(TarConstants.LF_DIR, name, "", 0);
  }

  Tar link(String name, String target) {
    return add(TarConstants.LF_LINK, name, target, 0);
  }

  Tar symlink(String name, String target) {
    return add(TarConstants.LF_SYMLINK, name, target, 0);
  }

  Tar add(byte type, String name, String link, long size) {
    try {
      TarArchiveEntry entry = new TarArchiveEntry(name, type, true);
      entry.setLinkName(link);
      entry.setSize(size);
      entry.setMode(0640);
      entry.setModTime(1_000_000_000_000L);
      byte[] header = new byte[TarScanner.BLOCK_BYTES];
      entry.writeEntryHeader(header, ZipEncodingHelper.getZipEncoding(ISO_8859_1.name()), true);
      out.writeBytes(header);
      return this;
    } catch (java.io.IOException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Appends content, padded to whole blocks. */
  Tar data(String content) {
    byte[] bytes = content.getBytes(ISO_8859_1);
    int blocks = (bytes.length + TarScanner.BLOCK_BYTES - 1) / TarScanner.BLOCK_BYTES;
    return raw(Arrays.copyOf(bytes, blocks * TarScanner.BLOCK_BYTES));
  }

  Tar raw(byte[] bytes) {
    out.writeBytes(bytes);
    return this;
  }

  /** Appends an extended header of KEY=VALUE records. */
  Tar pax(char type, String... records) {
    StringBuilder text = new StringBuilder();
    for (String record : records) {
      int size = record.length() + 3;
      while (String.valueOf(size).length() + record.length() + 2 != size) {
        size++;
      }
      text.append(size).append(' ').append(record).append('\n');
    }
    return add((byte) type, "pax", "", text.length()).data(text.toString());
  }

  /** Appends the end marker and returns the bytes. */
  byte[] end() {
    return raw(new byte[2 * TarScanner.BLOCK_BYTES]).bytes();
  }

  byte[] bytes() {
    return out.toByteArray();
  }
}
