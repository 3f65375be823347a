package io.pmfs.cache;

import com.google.common.base.Splitter;
import io.pmfs.metadata.Attributes;
import io.pmfs.tier.SourceStatus;
import java.nio.file.Path;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Identifies the content of a copy: a file of the source as the kernel describes it, at one time.
 *
 * @param fileSystem the name that {@link SourceFileSystems} gives its file system
 * @param changed the time of its last change, which no program can set
 */
record CopyKey(String fileSystem, long inode, long size, Instant modified, Instant changed) {
  /**
   * In the place of a user: a copy that has no file of its own, but a name of an equal one's. It
   * does not say who made that, because its readers can see the name.
   */
  static final int NOBODY = -1;

  /**
   * A copy's key, the user it was made for, and the CRC32C of its content, as its path has them.
   */
  record Named(CopyKey key, int user, int checksum) {}

  static CopyKey of(String fileSystem, SourceStatus status) {
    Attributes attributes = status.attributes();
    return new CopyKey(
        fileSystem,
        status.identity().inode(),
        attributes.size(),
        attributes.modificationTime(),
        attributes.changeTime());
  }

  /** The path of its copy below the directory of copies. */
  Path path(int user, int checksum) {
    String name =
        "%x-%x-%x.%x-%x.%x-%x-%08x"
            .formatted(
                inode,
                size,
                modified.getEpochSecond(),
                modified.getNano(),
                changed.getEpochSecond(),
                changed.getNano(),
                user,
                checksum);
    return Path.of(fileSystem, "%02x".formatted(inode & 0xff), name);
  }

  /** What a path below the directory of copies says; null if no copy has such a path. */
  static @Nullable Named parse(Path path) {
    List<String> parts = Splitter.on('-').splitToList(String.valueOf(path.getFileName()));
    if (path.getNameCount() != 3 || parts.size() != 6) {
      return null;
    }
    try {
      CopyKey key =
          new CopyKey(
              path.getName(0).toString(),
              number(parts.get(0)),
              number(parts.get(1)),
              time(parts.get(2)),
              time(parts.get(3)));
      Named named =
          new Named(
              key,
              Integer.parseUnsignedInt(parts.get(4), 16),
              Integer.parseUnsignedInt(parts.get(5), 16));
      return key.path(named.user(), named.checksum()).equals(path) ? named : null;
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
