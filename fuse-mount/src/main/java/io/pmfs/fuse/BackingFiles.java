package io.pmfs.fuse;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The files that the kernel reads without us, by inode. A copy is registered when its file is first
 * opened and stays registered, for the next open, until it goes or others push it out.
 *
 * <p>INVARIANT: all opens of an inode agree, as the kernel demands: while one is open, the next is
 * through the same backing file, or also through us; and what is open stays registered.
 */
final class BackingFiles {
  private static final Logger log = LoggerFactory.getLogger(BackingFiles.class);

  /** Stands for: read through us. The kernel's ids start at 1. */
  static final int NONE = 0;

  // _IOW(229, 1, struct fuse_backing_map) and _IOW(229, 2, uint32_t) of linux/fuse.h.
  private static final long BACKING_OPEN = 0x4010e501L;
  private static final long BACKING_CLOSE = 0x4004e502L;
  private static final int BACKING_MAP_SIZE = 16;

  /** Registrations kept of files that are not open. */
  private static final int REGISTERED = 4096;

  private static final LibC LIBC = LibC.INSTANCE;

  private final PmfsFileSystem fileSystem;
  private final int device;
  private final @Nullable BackingLedger ledger;

  // GUARDED_BY(this), as are the fields of their values. System calls happen outside the lock.
  private final Map<Long, Entry> entries = new HashMap<>();
  private final LinkedHashMap<Long, Entry> idle = new LinkedHashMap<>();

  private volatile @Nullable String unavailable;

  /** An inode that is open, or was and keeps its registration. */
  private static final class Entry {
    private final int id;
    private final int slot;
    private final boolean inherited;
    private int count;
    private boolean gone;

    Entry(int id, int slot, boolean inherited) {
      this.id = id;
      this.slot = slot;
      this.inherited = inherited;
    }
  }

  /**
   * The backing files of one session.
   *
   * @param ledger what a process before this one registered and the kernel may still use; null if
   *     the session ends with this process
   */
  BackingFiles(PmfsFileSystem fileSystem, int device, @Nullable BackingLedger ledger) {
    this.fileSystem = fileSystem;
    this.device = device;
    this.ledger = ledger;
    if (ledger != null) {
      // How often these are open nobody knows any more: they stay as they are until the session
      // ends.
      ledger.entries().forEach((inode, id) -> entries.put(inode, new Entry(id, -1, true)));
    }
    fileSystem.onCopyGone(this::copyGone);
  }

  /** Why the kernel reads nothing without us; null as far as is known it does. */
  @Nullable String unavailable() {
    return unavailable;
  }

  void setUnavailable(String why) {
    if (unavailable == null) {
      unavailable = why;
      log.warn("no passthrough: {}; files are read through the daemon and the page cache", why);
    }
  }

  /** Opens a file: the id of its backing file, or {@link #NONE} to read it through us. */
  int open(long inode) throws FsException {
    synchronized (this) {
      Entry known = entries.get(inode);
      if (known != null) {
        return enter(inode, known);
      }
    }
    Path file = unavailable == null ? fileSystem.copyFile(inode) : null;
    int id = file == null ? NONE : register(file);
    int superfluous = NONE;
    int result;
    synchronized (this) {
      Entry known = entries.get(inode);
      if (known == null) {
        known = new Entry(id, ledger == null ? -1 : ledger.put(inode, id), false);
        entries.put(inode, known);
      } else {
        superfluous = id;
      }
      result = enter(inode, known);
    }
    unregister(superfluous);
    return result;
  }

  private int enter(long inode, Entry entry) {
    if (entry.count++ == 0) {
      idle.remove(inode);
    }
    return entry.id;
  }

  /** Closes what was opened once. */
  void release(long inode) {
    int surplus = NONE;
    synchronized (this) {
      Entry entry = entries.get(inode);
      // A process before this one may have opened it: then there is nothing to count down.
      if (entry == null || entry.count == 0 || --entry.count > 0 || entry.inherited) {
        return;
      }
      if (entry.id == NONE || entry.gone) {
        surplus = remove(inode, entry);
      } else {
        idle.put(inode, entry);
        if (idle.size() > REGISTERED) {
          Map.Entry<Long, Entry> eldest = idle.entrySet().iterator().next();
          surplus = remove(eldest.getKey(), eldest.getValue());
        }
      }
    }
    unregister(surplus);
  }

  private void copyGone(long inode) {
    int surplus = NONE;
    synchronized (this) {
      Entry entry = entries.get(inode);
      if (entry == null || entry.inherited) {
        return;
      }
      entry.gone = true;
      if (entry.count == 0) {
        surplus = remove(inode, entry);
      }
    }
    unregister(surplus);
  }

  private int remove(long inode, Entry entry) {
    entries.remove(inode);
    idle.remove(inode);
    if (ledger != null) {
      ledger.remove(entry.slot);
    }
    return entry.id;
  }

  private int register(Path path) {
    int file = LIBC.openat(Posix.AT_FDCWD, Posix.terminated(path.toString()), Posix.O_CLOEXEC);
    if (file < 0) {
      return NONE;
    }
    try {
      ByteBuffer map = ByteBuffer.allocateDirect(BACKING_MAP_SIZE).order(ByteOrder.nativeOrder());
      map.putInt(0, file);
      int id = LIBC.ioctl(device, BACKING_OPEN, Pointer.wrap(Posix.RUNTIME, map).address());
      if (id <= 0) {
        refused(Posix.errno());
        return NONE;
      }
      return id;
    } finally {
      LIBC.close(file);
    }
  }

  private void refused(Errno errno) {
    setUnavailable(
        switch (errno) {
          case EPERM -> "the daemon lacks CAP_SYS_ADMIN";
          case ELOOP -> "the tier lies on a stacked file system";
          default -> "the kernel refuses a backing file with " + errno;
        });
  }

  private void unregister(int id) {
    if (id != NONE) {
      ByteBuffer number = ByteBuffer.allocateDirect(Integer.BYTES).order(ByteOrder.nativeOrder());
      number.putInt(0, id);
      LIBC.ioctl(device, BACKING_CLOSE, Pointer.wrap(Posix.RUNTIME, number).address());
    }
  }
}
