package io.pmfs.metadata;

import com.google.common.hash.HashFunction;
import com.google.common.hash.Hasher;
import com.google.common.hash.Hashing;
import java.security.SecureRandom;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The directory of each inode seen in this session, with hashes of its name and file. If the state
 * is lost, this finds the file of an assigned number, and the number of a file. Takes 16 bytes for
 * each of at most 2²¹ inodes; later inodes are not kept. Thread-safe.
 */
final class Lineage {
  private static final int ROW_LONGS = 2;
  private static final int PAGE_SHIFT = 8;
  private static final int PAGE_ROWS = 1 << PAGE_SHIFT;
  private static final int MAX_PAGES = (1 << 21) / PAGE_ROWS;

  /** Keyed with a secret, so that users cannot choose colliding names. */
  private final HashFunction hash;

  private final ConcurrentHashMap<Long, long[]> pages = new ConcurrentHashMap<>();
  private final AtomicInteger pageCount = new AtomicInteger();

  Lineage(SecureRandom random) {
    hash = Hashing.sipHash24(random.nextLong(), random.nextLong());
  }

  void note(Inode inode) {
    long[] page = page(inode.number());
    if (page != null) {
      int at = at(inode.number());
      long hashes = hashes(inode.name(), inode.identity(), inode.attributes());
      // A reader that sees the parent of one write and the hashes of another finds no match.
      if (page[at] != inode.parent() || page[at + 1] != hashes) {
        page[at + 1] = hashes;
        page[at] = inode.parent();
      }
    }
  }

  private long @Nullable [] page(long number) {
    long index = number >>> PAGE_SHIFT;
    long[] page = pages.get(index);
    if (page != null || pageCount.get() >= MAX_PAGES) {
      return page;
    }
    return pages.computeIfAbsent(
        index,
        absent -> {
          pageCount.incrementAndGet();
          return new long[PAGE_ROWS * ROW_LONGS];
        });
  }

  private static int at(long number) {
    return (int) (number & (PAGE_ROWS - 1)) * ROW_LONGS;
  }

  /** The directory in which an inode was seen; 0 if unknown. */
  long parent(long number) {
    long[] page = pages.get(number >>> PAGE_SHIFT);
    return page == null ? 0 : page[at(number)];
  }

  /** Whether an inode was seen with this name, as this version of this file. */
  boolean isSame(long number, FileName name, FileIdentity identity, Attributes attributes) {
    long[] page = pages.get(number >>> PAGE_SHIFT);
    return page != null && page[at(number) + 1] == hashes(name, identity, attributes);
  }

  /** The numbers seen in a directory, by their hashes. Scans all rows. */
  Map<Long, Long> numbersIn(long directory) {
    Map<Long, Long> numbers = new HashMap<>();
    List<Long> twice = new ArrayList<>();
    pages.forEach(
        (index, page) -> {
          for (int row = 0; row < PAGE_ROWS; row++) {
            if (page[row * ROW_LONGS] == directory) {
              long hashes = page[row * ROW_LONGS + 1];
              long number = (index << PAGE_SHIFT) + row;
              if (number != Namespace.ROOT && numbers.put(hashes, number) != null) {
                twice.add(hashes);
              }
            }
          }
        });
    twice.forEach(numbers::remove);
    return numbers;
  }

  /** The upper half hashes the name, the lower half the file's version. */
  long hashes(FileName name, FileIdentity identity, Attributes attributes) {
    Hasher file = hash.newHasher();
    file.putInt(attributes.type().number()).putLong(identity.inode());
    if (attributes.type() == FileType.REGULAR) {
      SourceVersion version = attributes.version();
      file.putLong(version.size());
      Instant modified = version.modificationTime();
      file.putLong(modified.getEpochSecond()).putInt(modified.getNano());
    }
    long named = hash.hashBytes(name.raw()).asLong();
    return (named & 0xffffffff_00000000L) | (file.hash().asLong() & 0xffffffffL);
  }
}
