package io.pmfs.shards;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceFile;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** All visible properties of a tree, one line for each name, in the form of find and md5sum. */
final class Listing {
  private Listing() {}

  /** Omits link counts of directories, and sizes of files that are not regular. */
  static Map<String, String> ofDirectory(Path directory) {
    TreeMap<String, String> lines = new TreeMap<>();
    String found =
        Shell.run(directory, "find . -mindepth 1 -printf '%P\\0%y %m %U %G %n %s %T@ %l\\0'");
    String[] parts = found.split("\0", -1);
    for (int i = 0; i + 1 < parts.length; i += 2) {
      String[] fields = parts[i + 1].split(" ", 8);
      if (!fields[0].equals("f")) {
        fields[5] = "-";
      }
      if (fields[0].equals("d")) {
        fields[4] = "-";
      }
      fields[6] = (fields[6] + "000000000").replaceAll("(\\.\\d{9}).*", "$1");
      lines.put(parts[i], String.join(" ", fields));
    }
    String sums = Shell.run(directory, "find . -type f -print0 | xargs -0 -r md5sum -z");
    for (String sum : sums.split("\0", -1)) {
      if (!sum.isEmpty()) {
        lines.merge(sum.substring(36), sum.substring(0, 32), (line, md5) -> line + md5);
      }
    }
    return lines;
  }

  static Map<String, String> ofStore(BackingStore store) throws FsException {
    TreeMap<String, String> lines = new TreeMap<>();
    add(store, FileName.of(""), lines);
    return lines;
  }

  private static void add(BackingStore store, FileName directory, Map<String, String> lines)
      throws FsException {
    List<FileName> names = new ArrayList<>();
    store.list(
        directory,
        batch -> {
          names.addAll(batch);
          return true;
        });
    for (FileName name : names) {
      FileName path = directory.resolve(name);
      Attributes attributes = store.status(path).attributes();
      lines.put(path.toLatin1(), line(store, path, attributes));
      if (attributes.type() == FileType.DIRECTORY) {
        add(store, path, lines);
      }
    }
  }

  private static String line(BackingStore store, FileName path, Attributes attributes)
      throws FsException {
    boolean regular = attributes.type() == FileType.REGULAR;
    Instant modified = attributes.modificationTime();
    boolean link = attributes.type() == FileType.SYMBOLIC_LINK;
    return "%s %o %d %d %s %s %d.%09d %s%s"
        .formatted(
            letter(attributes.type()),
            attributes.mode() & 07777,
            attributes.uid(),
            attributes.gid(),
            attributes.type() == FileType.DIRECTORY ? "-" : attributes.linkCount(),
            regular ? attributes.size() : "-",
            modified.getEpochSecond(),
            modified.getNano(),
            link ? store.readSymbolicLink(path).toLatin1() : "",
            regular ? md5(content(store, path)) : "");
  }

  private static String letter(FileType type) {
    return switch (type) {
      case DIRECTORY -> "d";
      case REGULAR -> "f";
      case SYMBOLIC_LINK -> "l";
      case FIFO -> "p";
      case CHARACTER_DEVICE -> "c";
      case BLOCK_DEVICE -> "b";
      case SOCKET -> "s";
      case UNKNOWN -> "U";
    };
  }

  /** Reads in pieces that cross all boundaries. */
  static byte[] content(BackingStore store, FileName path) throws FsException {
    try (SourceFile file = store.open(path)) {
      return content(file);
    }
  }

  static byte[] content(SourceFile file) throws FsException {
    byte[] bytes = new byte[(int) file.status().attributes().size()];
    ByteBuffer piece = ByteBuffer.allocateDirect(4099);
    int at = 0;
    while (true) {
      piece.clear();
      int count = file.read(at, piece);
      piece.flip().get(bytes, at, count);
      at += count;
      if (count < 4099) {
        return at == bytes.length ? bytes : "short".getBytes(ISO_8859_1);
      }
    }
  }

  private static String md5(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("MD5").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
