package io.pmfs.fuse;

import io.pmfs.metadata.Attributes;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The versions of files opened last: the kernel may keep cached data of a file that has not changed
 * since its last open. Thread-safe.
 */
final class SeenVersions {
  /** About 200 bytes of heap each. */
  private static final int MOST = 50_000;

  // GUARDED_BY(this); least recently opened first
  private final Map<Long, Version> versions =
      new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Version> eldest) {
          return size() > MOST;
        }
      };

  private record Version(long size, Instant modificationTime, Instant changeTime) {}

  /** Whether these are the file's attributes at its last open; remembers them. */
  synchronized boolean isLast(long inode, Attributes attributes) {
    Version version =
        new Version(attributes.size(), attributes.modificationTime(), attributes.changeTime());
    return version.equals(versions.put(inode, version));
  }
}
