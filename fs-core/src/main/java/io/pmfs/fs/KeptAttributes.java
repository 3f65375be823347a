package io.pmfs.fs;

import com.google.common.util.concurrent.Striped;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;

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
    this.ahead = new EntriesAhead(namespace, threads, this::fetch);
  }

  public boolean isKept(long number) {
    Inode inode = namespace.inode(number);
    return inode != null && kept(inode) != null;
  }

  private @Nullable Map<FileName, byte[]> kept(Inode inode) {
    return namespace.extendedAttributes(inode.number(), inode.attributes().changeTime());
  }

  /**
   * The attributes of an inode, for a reader who may continue with the other entries of its
   * directory.
   */
  public Map<FileName, byte[]> of(Inode inode) throws FsException {
    Map<FileName, byte[]> kept = kept(inode);
    if (kept != null) {
      return kept;
    }
    ahead.asked(inode.number(), inode.parent());
    return fetch(inode);
  }

  /** The attributes of an inode, which are probably not kept yet. */
  public Map<FileName, byte[]> fetch(long number) throws FsException {
    Inode inode = namespace.inode(number);
    if (inode == null) {
      throw new FsException(Errno.ESTALE, "inode " + number);
    }
    return fetch(inode);
  }

  private Map<FileName, byte[]> fetch(Inode inode) throws FsException {
    long number = inode.number();
    Lock lock = locks.get(number);
    lock.lock();
    try {
      Map<FileName, byte[]> kept = kept(inode);
      if (kept != null) {
        return kept;
      }
      FileName path = namespace.path(number);
      if (path == null) {
        throw new FsException(Errno.ESTALE, "inode " + number + " has no path");
      }
      Map<FileName, byte[]> attributes = source.extendedAttributes(path);
      // They may be newer than the inode; the newer ones count.
      namespace.putExtendedAttributes(number, inode.attributes().changeTime(), attributes);
      return attributes;
    } finally {
      lock.unlock();
    }
  }
}
