package io.pmfs.fs;

import com.google.common.util.concurrent.Striped;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.Lock;

/** A cache of extended attributes, fetched {@linkplain EntriesAhead ahead}. Thread-safe. */
public final class KeptAttributes {
  private static final int LOCKS = 1024;

  private final Namespace namespace;
  private final BackingStore source;
  private final EntriesAhead ahead;

  /** Held while the source is asked, so that each inode is requested once. */
  private final Striped<Lock> locks = Striped.lazyWeakLock(LOCKS);

  KeptAttributes(Namespace namespace, BackingStore source, Executor threads) {
    this.namespace = namespace;
    this.source = source;
    this.ahead = new EntriesAhead(namespace, threads, this::of);
  }

  public boolean isKept(long number) {
    return namespace.extendedAttributes(number) != null;
  }

  /** The attributes of an inode. */
  public Map<FileName, byte[]> of(long number) throws FsException {
    Map<FileName, byte[]> kept = namespace.extendedAttributes(number);
    return kept == null ? fetch(number) : kept;
  }

  /**
   * The attributes of an inode, for a reader who may continue with the other entries of its
   * directory.
   */
  public Map<FileName, byte[]> of(long number, long directory) throws FsException {
    Map<FileName, byte[]> kept = namespace.extendedAttributes(number);
    if (kept != null) {
      return kept;
    }
    ahead.asked(number, directory);
    return fetch(number);
  }

  /** The attributes of an inode, which are probably not kept yet. */
  public Map<FileName, byte[]> fetch(long number) throws FsException {
    Lock lock = locks.get(number);
    lock.lock();
    try {
      Map<FileName, byte[]> kept = namespace.extendedAttributes(number);
      if (kept != null) {
        return kept;
      }
      FileName path = namespace.path(number);
      if (path == null) {
        throw new FsException(Errno.ESTALE, "inode " + number + " has no path");
      }
      Map<FileName, byte[]> attributes = source.extendedAttributes(path);
      namespace.putExtendedAttributes(number, attributes);
      return attributes;
    } finally {
      lock.unlock();
    }
  }
}
