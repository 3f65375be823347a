package io.pmfs.daemon.requests;

import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.metadata.FileName;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Caches the paths of inodes, which do not change while a dataset is mounted. Thread-safe. */
final class RequestPaths {
  private static final Logger log = LoggerFactory.getLogger(RequestPaths.class);

  /** About 300 bytes each; a power of two. */
  private static final int SLOTS = 8192;

  private final LongFunction<@Nullable FileName> namespace;

  /** A direct-mapped cache, because a lookup in an LRU cache cost more than the rest of a line. */
  private final AtomicReferenceArray<@Nullable Known> known = new AtomicReferenceArray<>(SLOTS);

  private record Known(long inode, FileName path) {}

  /**
   * @param namespace returns the path of an inode below the root; null if there is none
   */
  RequestPaths(LongFunction<@Nullable FileName> namespace) {
    this.namespace = namespace;
  }

  /** The call of a request, with its path if known. */
  Call call(AskedRequest asked) {
    FileName path = asked.path();
    FileName name = asked.name();
    if (path == null) {
      path = pathOf(asked.inode());
      if (path != null && name != null && asked.operation().equals("lookup")) {
        path = path.resolve(name);
        name = null;
      }
    }
    return new Call(
        asked.uid(),
        asked.gid(),
        asked.pid(),
        asked.operation(),
        path,
        path == null ? asked.inode() : LogLine.NONE,
        name,
        asked.size(),
        asked.offset());
  }

  private @Nullable FileName pathOf(long inode) {
    int slot = (int) (inode & (SLOTS - 1));
    Known there = known.getAcquire(slot);
    if (there != null && there.inode() == inode) {
      return there.path();
    }
    FileName path = null;
    try {
      path = namespace.apply(inode);
    } catch (RuntimeException e) {
      log.debug("the path of inode {}", inode, e);
    }
    if (path != null) {
      known.setRelease(slot, new Known(inode, path));
    }
    return path;
  }
}
