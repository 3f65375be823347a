package io.pmfs.fuse;

import io.pmfs.metadata.Attributes;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The versions of files that were opened last: the kernel may keep what it has cached of a file
 * that has not changed since its last open. Safe for use by many threads.
 */
final class SeenVersions {
  /** About 150 bytes of heap each. */
  private static final int MOST = 50_000;

  // GUARDED_BY(this); least recently opened first
  private final Map<Long, Long> versions =
      new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Long> eldest) {
          return size() > MOST;
        }
      };

  /** Whether these are the attributes of the last open of that file; remembers them. */
  synchronized boolean isLast(long inode, Attributes attributes) {
    long version = versionOf(attributes);
    Long last = versions.put(inode, version);
    return last != null && last == version;
  }

  private static long versionOf(Attributes attributes) {
    long version = attributes.size();
    version = version * 31 + attributes.modificationTime().getEpochSecond();
    version = version * 1_000_003 + attributes.modificationTime().getNano();
    version = version * 31 + attributes.changeTime().getEpochSecond();
    return version * 1_000_003 + attributes.changeTime().getNano();
  }
}
