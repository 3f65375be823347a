package io.pmfs.cache;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Finds copies that may be equal, by size and checksum, and counts those that are kept once.
 * Guarded by {@link SharedCopies}.
 *
 * <p>Of the copies with one size and checksum it knows one, the latest that differed from the one
 * before. So a copy is compared with one other at most, whatever files users make.
 */
final class EqualCopies {
  /** A smaller file would spare an inode and a part of a block, and each link costs a name. */
  static final int LEAST_BYTES = 4096;

  private final Map<Content, SharedCopy> latest = new HashMap<>();
  private long sharing;
  private long sparedBytes;

  /** What equal copies have in common; others may have it, too. */
  private record Content(long size, int checksum) {
    static Content of(SharedCopy copy) {
      return new Content(copy.key.size(), copy.checksum);
    }
  }

  /**
   * A known copy with the same size and checksum; null if none is known. Then it knows this one
   * from now on.
   */
  @Nullable SharedCopy candidate(SharedCopy copy) {
    if (copy.key.size() < LEAST_BYTES) {
      return null;
    }
    SharedCopy known = latest.putIfAbsent(Content.of(copy), copy);
    return known == copy ? null : known;
  }

  /** Later copies are compared with this one. */
  void prefer(SharedCopy copy) {
    latest.put(Content.of(copy), copy);
  }

  /** No later copy is compared with this one. */
  void forget(SharedCopy copy) {
    latest.remove(Content.of(copy), copy);
  }

  /** So many more copies share the file of this one; fewer if it is negative. */
  void count(SharedCopy copy, int more) {
    sharing += more;
    sparedBytes += more * copy.room();
  }

  /** The copies that have no file of their own. */
  long sharing() {
    return sharing;
  }

  /** The room that these would need. */
  long sparedBytes() {
    return sparedBytes;
  }
}
