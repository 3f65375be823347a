package io.pmfs.stage;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.posix.OpenFileLimit;
import io.pmfs.source.BackingStore;
import io.pmfs.source.LentFile;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.copies.HandleTable;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/** Open files of the source by inode, kept open while in use and for a while after. */
final class OpenSources implements AutoCloseable {
  private static final int MOST = 256;
  private static final Duration IDLE = Duration.ofSeconds(30);

  private final Namespace namespace;
  private final BackingStore source;
  private final HandleTable<OpenSource> files =
      new HandleTable<>(Math.min(MOST, OpenFileLimit.ofProcess()), IDLE);

  OpenSources(Namespace namespace, BackingStore source) {
    this.namespace = namespace;
    this.source = source;
  }

  /** The open file of an inode, until the lease is closed. */
  HandleTable<OpenSource>.Lease acquire(Inode inode) throws FsException {
    while (true) {
      var lease = files.acquire(inode.number(), () -> open(inode));
      if (lease == null) {
        throw new FsException(Errno.ENOENT, "inode " + inode.number());
      }
      if (lease.handle().isOf(inode)) {
        return lease;
      }
      // Opened for an earlier version of the file; the next round reopens it.
      lease.close();
      files.invalidate(inode.number());
    }
  }

  private OpenSource open(Inode inode) throws FsException {
    FileName path = namespace.path(inode.number());
    if (path == null) {
      throw new FsException(Errno.ESTALE, "inode " + inode.number() + " has no path");
    }
    SourceFile file = source.openVersion(path, inode.attributes().version());
    return new OpenSource(inode, file, () -> namespace.noteRenumbered(1));
  }

  /**
   * Reads a range, which must lie within the file, for one reader: fills the destination. A file
   * that failed is not kept open: its handle may be stale, as after a server was replaced, while
   * opening its path again may succeed.
   *
   * @throws FsException the source's own failure; ESTALE if the file was replaced
   */
  void read(Inode inode, long offset, ByteBuffer destination) throws FsException {
    int count = destination.remaining();
    for (boolean isAnew = false; ; isAnew = true) {
      try (var lease = acquire(inode)) {
        readWhole(lease.handle(), offset, destination.rewind().limit(count));
        return;
      } catch (FsException e) {
        files.invalidate(inode.number());
        if (isAnew || e.errno() != Errno.ESTALE) {
          throw e;
        }
      }
    }
  }

  private void readWhole(OpenSource open, long offset, ByteBuffer destination) throws FsException {
    int count = destination.remaining();
    int read = open.read(offset, destination);
    // Checked after the read and before serving: only then is it certain which file the bytes came
    // from.
    if (!open.isTheFile()) {
      throw new FsException(
          Errno.ESTALE, name(open.inode) + " was replaced in the source while mounted");
    }
    if (read < count) {
      throw new FsException(
          Errno.EIO,
          name(open.inode)
              + " is shorter than when it was looked up; unmount the dataset and mount it again");
    }
  }

  /** Fails unless the file is the inode's and of its version. */
  void prove(Inode inode) throws FsException {
    try (var lease = acquire(inode)) {
      lease.handle().prove();
    } catch (FsException e) {
      files.invalidate(inode.number());
      throw e;
    }
  }

  /** Fails if the file at the source is not the one that was copied. */
  void proveCopy(Inode inode) throws FsException {
    try (var lease = acquire(inode)) {
      lease.handle().file.proveCopy();
    }
  }

  /** A lent file with the whole content of an inode; null if there is none. */
  @Nullable LentFile lend(Inode inode) throws FsException {
    try (var lease = acquire(inode)) {
      OpenSource open = lease.handle();
      return open.isUnchanged() ? open.file.lend() : null;
    }
  }

  /** The file's name in messages. */
  String name(Inode inode) {
    FileName path = namespace.path(inode.number());
    return path == null ? "inode " + inode.number() : path.toString();
  }

  /** Wraps a file that the caller opened and closes. */
  static OpenSource opened(Inode inode, SourceFile file) {
    return new OpenSource(inode, file, () -> {});
  }

  void invalidate(long number) {
    files.invalidate(number);
  }

  @Override
  public void close() {
    files.close();
  }

  /**
   * An open file of the source. Nothing is served from it before a check that it is the inode's
   * file: a path may have been replaced by a link to another file, whose content must not be served
   * with this file's permissions.
   */
  static final class OpenSource implements AutoCloseable {
    private final Inode inode;
    private final SourceFile file;
    private final Runnable renumbered;
    private volatile boolean isTheFile;

    private OpenSource(Inode inode, SourceFile file, Runnable renumbered) {
      this.inode = inode;
      this.file = file;
      this.renumbered = renumbered;
    }

    private boolean isOf(Inode other) {
      return inode.identity().equals(other.identity())
          && inode.attributes().version().equals(other.attributes().version());
    }

    /** Reads until the destination is full or the file ends; returns the byte count. */
    int read(long offset, ByteBuffer destination) throws FsException {
      return file.read(offset, destination);
    }

    private void prove() throws FsException {
      file.prove();
      if (!isTheFile()) {
        throw new FsException(Errno.ESTALE, "inode " + inode.number() + " was replaced");
      }
    }

    /** See {@link SourceFile#streams}. */
    int streams() {
      return file.streams();
    }

    /** See {@link SourceFile#choose}. */
    int choose(BitSet missing) throws FsException {
      return file.choose(missing);
    }

    /** Whether this is the inode's file. Asks the source once, for all threads. */
    boolean isTheFile() throws FsException {
      return isTheFile || askWhetherItIs();
    }

    private synchronized boolean askWhetherItIs() throws FsException {
      if (!isTheFile) {
        isTheFile = isTheFile(file.status());
      }
      return isTheFile;
    }

    /**
     * Some sources change inode numbers. The file is then the inode's if size, times, mode and
     * owners match, so that nothing is served with another file's permissions.
     */
    private boolean isTheFile(SourceStatus now) {
      if (now.identity().equals(inode.identity())) {
        return true;
      }
      Attributes known = inode.attributes();
      boolean isUntouched =
          known.areUntouched(now.attributes()) && known.giveSameAccess(now.attributes());
      if (isUntouched && inode.isRenumbered(now.identity(), now.attributes())) {
        renumbered.run();
      }
      return isUntouched;
    }

    /** Whether the file is still of the inode's version. Asks the source each time. */
    boolean isUnchanged() throws FsException {
      SourceStatus now = file.status();
      isTheFile = isTheFile(now);
      return isTheFile && now.attributes().version().equals(inode.attributes().version());
    }

    @Override
    public void close() {
      file.close();
    }
  }
}
