package io.pmfs.cache;

import com.google.common.base.Splitter;
import io.pmfs.metadata.Attributes;
import io.pmfs.source.SourceStatus;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Identifies the content of a copy: one version of a file of the source, from its attributes.
 *
 * @param fileSystem the file system's name in {@link SourceFileSystems}
 * @param changed the change time (ctime), which no program can set
 */
record CopyKey(long fileSystem, long inode, long size, Instant modified, Instant changed) {
  /** Stands for a user id if the user of a copy is unknown. */
  static final int NOBODY = -1;

  static final int BYTES = 5 * Long.BYTES + 2 * Integer.BYTES;

  /** The content of a copy's path. Readers can see the path, so it names no user. */
  record Named(CopyKey key, int checksum) {}

  static CopyKey of(long fileSystem, SourceStatus status) {
    Attributes attributes = status.attributes();
    return new CopyKey(
        fileSystem,
        status.identity().inode(),
        attributes.size(),
        attributes.modificationTime(),
        attributes.changeTime());
  }

  /** The key of its record in the {@link CopyIndex}. */
  byte[] encoded() {
    return put(ByteBuffer.allocate(BYTES)).array();
  }

  ByteBuffer put(ByteBuffer to) {
    return to.putLong(fileSystem)
        .putLong(inode)
        .putLong(size)
        .putLong(modified.getEpochSecond())
        .putInt(modified.getNano())
        .putLong(changed.getEpochSecond())
        .putInt(changed.getNano());
  }

  static CopyKey take(ByteBuffer from) {
    return new CopyKey(from.getLong(), from.getLong(), from.getLong(), time(from), time(from));
  }

  private static Instant time(ByteBuffer from) {
    return Instant.ofEpochSecond(from.getLong(), from.getInt());
  }

  /** The path of its copy, relative to the directory of copies. */
  Path path(int checksum) {
    String name =
        "%x-%x-%x.%x-%x.%x-%08x"
            .formatted(
                inode,
                size,
                modified.getEpochSecond(),
                modified.getNano(),
                changed.getEpochSecond(),
                changed.getNano(),
                checksum);
    return Path.of("%016x".formatted(fileSystem), "%02x".formatted(inode & 0xff), name);
  }

  /** What a path below the directory of copies says; null if no copy has such a path. */
  static @Nullable Named parse(Path path) {
    List<String> parts = Splitter.on('-').splitToList(String.valueOf(path.getFileName()));
    if (path.getNameCount() != 3 || parts.size() != 5) {
      return null;
    }
    try {
      CopyKey key =
          new CopyKey(
              number(path.getName(0).toString()),
              number(parts.get(0)),
              number(parts.get(1)),
              time(parts.get(2)),
              time(parts.get(3)));
      Named named = new Named(key, Integer.parseUnsignedInt(parts.get(4), 16));
      return key.path(named.checksum()).equals(path) ? named : null;
    } catch (NumberFormatException | DateTimeException e) {
      return null;
    }
  }

  private static long number(String text) {
    return Long.parseUnsignedLong(text, 16);
  }

  private static Instant time(String text) {
    List<String> parts = Splitter.on('.').limit(2).splitToList(text);
    return Instant.ofEpochSecond(
        number(parts.get(0)), parts.size() < 2 ? -1 : number(parts.get(1)));
  }
}
