package io.pmfs.writable.remote;

import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.Interrupts;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.OutputCalls.Acting;
import io.pmfs.writable.WritableFileSystem.AtSource;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.places.CopyBuffers;
import io.pmfs.writable.tree.SourceLooks;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads content that only the source has directly from the source, not through the owner: from an
 * open answered by the owner until the owner reports another version, or a program of this node
 * changes the file. Thread-safe.
 *
 * <p>The owner identifies the file; this node's own source checks permissions: the file is opened
 * there as each user who reads it. If that fails, or the attributes at the source differ from the
 * owner's, the content is read through the owner.
 *
 * <p>Each call at the source has its own thread, because the source may hang: a signal ends the
 * request.
 */
final class SourceReads {
  private static final Logger log = LoggerFactory.getLogger(SourceReads.class);
  private static final int COUNTERS = 256;
  private static final FileName NO_NAME = FileName.of("");

  /** How often a request that waits for another one checks whether it was interrupted. */
  private static final long POLL_MILLIS = 50;

  private final OutputCalls calls;
  private final Path source;
  private final SourceLooks looks;

  /** By inode; changed only under this object's lock. */
  private final Map<Long, SourceFile> files = new ConcurrentHashMap<>();

  private final Map<Long, Reader> handles = new ConcurrentHashMap<>();

  /** Counts of changes by this node's programs, by the low bits of the inode. */
  private final AtomicLongArray changes = new AtomicLongArray(COUNTERS);

  SourceReads(OutputCalls calls, Path source, Interrupts interrupts) {
    this.calls = calls;
    this.source = source;
    this.looks = new SourceLooks(0, 0, interrupts); // Nothing is cached here.
  }

  /** A handle that reads a file, and its user. */
  private record Reader(SourceFile file, int uid, int gid) {
    long user() {
      return (long) uid << Integer.SIZE | Integer.toUnsignedLong(gid);
    }
  }

  /**
   * What opening a file has led to.
   *
   * @param file -1 if it failed
   */
  private record Opening(int file, @Nullable FsException failure) {}

  /** A version of a file, opened by its first reader. */
  private final class SourceFile {
    final long inode;
    final AtSource place;
    final SourceVersion version;
    private final Attributes known;

    /** Whether each user may read it at the source. */
    private final Map<Long, Boolean> admitted = new ConcurrentHashMap<>();

    private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
    private int file = -1; // GUARDED_BY(lock)

    /** How many handles read it. Changed only under the outer object's lock. */
    int users;

    private volatile boolean isOver;

    SourceFile(long inode, AtSource place, Attributes known) {
      this.inode = inode;
      this.place = place;
      this.known = known;
      this.version = known.version();
    }

    boolean is(AtSource other, SourceVersion otherVersion) {
      return place.inode() == other.inode() && version.equals(otherVersion);
    }

    /** Stops further reads; the file is closed once running reads have ended. */
    void end() {
      isOver = true;
      closeUnread();
    }

    private void closeUnread() {
      if (isOver && lock.writeLock().tryLock()) {
        try {
          if (file >= 0) {
            looks.closeLater(file, calls::close);
            file = -1;
          }
        } finally {
          lock.writeLock().unlock();
        }
      }
    }

    /** Returns false if the content must be read through the owner. */
    boolean read(Reader by, long offset, int size, ReadSink sink) throws FsException {
      try {
        return admits(by) && readOpen(offset, size, sink);
      } finally {
        closeUnread();
      }
    }

    private boolean admits(Reader by) throws FsException {
      Boolean isAdmitted = admitted.get(by.user());
      return isAdmitted == null ? opens(by) : isAdmitted;
    }

    /** Opens the file as a user who reads it for the first time. */
    private boolean opens(Reader by) throws FsException {
      await(lock.writeLock());
      try {
        Boolean isAdmitted = admitted.get(by.user());
        if (isAdmitted != null || isOver) {
          return isAdmitted != null && isAdmitted;
        }
        Opening opening = looks.await(() -> tryToOpen(by), this::closeUnwanted);
        FsException failure = opening.failure();
        if (failure == null) {
          take(opening.file());
        } else {
          log.debug("inode {} is read through the owner: {}", inode, failure.getMessage());
          if (failure.errno() != Errno.EACCES) {
            isOver = true;
          }
        }
        admitted.put(by.user(), failure == null);
        return failure == null;
      } finally {
        lock.writeLock().unlock();
      }
    }

    private void take(int opened) {
      if (file < 0) {
        file = opened;
      } else {
        looks.closeLater(opened, calls::close);
      }
    }

    private Opening tryToOpen(Reader by) {
      try {
        return new Opening(open(by), null);
      } catch (FsException e) {
        return new Opening(-1, e);
      }
    }

    private void closeUnwanted(Opening opening) {
      if (opening.file() >= 0) {
        calls.close(opening.file());
      }
    }

    private int open(Reader by) throws FsException {
      int root = calls.openRoot(source);
      int directory = root;
      try (Acting acting = calls.actAs(by.uid(), by.gid())) {
        Objects.requireNonNull(acting);
        if (place.directory().size() > 0) {
          directory = calls.openDirectory(root, place.directory());
        }
        return checked(calls.open(directory, place.name(), OutputCalls.O_RDONLY, 0));
      } finally {
        if (directory != root) {
          calls.close(directory);
        }
        calls.close(root);
      }
    }

    private int checked(int opened) throws FsException {
      try {
        Stat stat = calls.status(opened, NO_NAME);
        boolean isSame =
            stat.inode() == place.inode()
                && stat.attributes().type() == FileType.REGULAR
                && stat.attributes().version().equals(version)
                && stat.attributes().giveSameAccess(known);
        if (!isSame) {
          throw new FsException(Errno.ESTALE, place.name() + " is a different version here");
        }
        return opened;
      } catch (FsException e) {
        calls.close(opened);
        throw e;
      }
    }

    private boolean readOpen(long offset, int size, ReadSink sink) throws FsException {
      long left = Math.max(0, version.size() - offset);
      int wanted = (int) Math.min(Math.min(size, CopyBuffers.BYTES), left);
      ByteBuffer bytes;
      await(lock.readLock());
      try {
        if (isOver) {
          return false;
        }
        bytes = looks.await(() -> bytes(offset, wanted), CopyBuffers::give);
      } finally {
        lock.readLock().unlock();
      }
      try {
        if (bytes.remaining() < wanted) {
          isOver = true; // Another program has shortened it.
          return false;
        }
        OwnerCalls.pass(bytes, sink);
        return true;
      } finally {
        CopyBuffers.give(bytes);
      }
    }

    /**
     * Reads into separate memory, as a hanging read may outlive its request, which has the lock.
     */
    private ByteBuffer bytes(long offset, int wanted) {
      ByteBuffer bytes = CopyBuffers.take().limit(wanted);
      int count = 0;
      try {
        count = wanted == 0 ? 0 : calls.read(file, bytes, offset);
      } catch (FsException e) {
        log.debug("inode {} is read through the owner: {}", inode, e.getMessage());
      }
      return bytes.position(0).limit(count);
    }

    /** Takes a part of the lock, whose holder may wait for the source. */
    private void await(Lock part) throws FsException {
      try {
        while (!part.tryLock(POLL_MILLIS, TimeUnit.MILLISECONDS)) {
          looks.checkInterrupted();
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new FsException(Errno.EINTR, "waiting for inode " + inode, e);
      }
    }
  }

  /** The value to pass to {@link #opened}, taken before the owner is asked. */
  long changesOf(long inode) {
    return changes.get(counter(inode));
  }

  private static int counter(long inode) {
    return (int) (inode & (COUNTERS - 1));
  }

  /**
   * The owner has opened a file.
   *
   * @param before what {@link #changesOf} said before the owner was asked: what it answered may be
   *     older than a change by this node
   * @param caller who reads it
   */
  void opened(Opened opened, long before, Caller caller) {
    long inode = opened.node().inode();
    AtSource place = opened.source();
    SourceVersion version = opened.node().attributes().version();
    SourceFile former;
    synchronized (this) {
      former = files.get(inode);
      if (former != null && place != null && former.is(place, version) && !former.isOver) {
        former.users++;
        handles.put(opened.handle(), new Reader(former, caller.uid(), caller.gid()));
        return;
      }
      files.remove(inode);
      if (place != null) {
        SourceFile file = new SourceFile(inode, place, opened.node().attributes());
        file.users = 1;
        files.put(inode, file);
        handles.put(opened.handle(), new Reader(file, caller.uid(), caller.gid()));
      }
    }
    if (former != null) {
      former.end();
    }
    // Checked last: a change is counted before it ends what it finds.
    if (changesOf(inode) != before) {
      end(files.get(inode));
    }
  }

  void release(long handle) {
    Reader reader = handles.remove(handle);
    if (reader == null) {
      return;
    }
    SourceFile file = reader.file();
    synchronized (this) {
      file.users--;
      if (file.users > 0) {
        return;
      }
      files.remove(file.inode, file);
    }
    file.end();
  }

  /** Reads from the source; returns false if the owner has to be asked. */
  boolean read(long handle, long offset, int size, ReadSink sink) throws FsException {
    Reader reader = handles.get(handle);
    return reader != null && reader.file().read(reader, offset, size, sink);
  }

  /** A program of this node has changed a file, or may have. */
  void changed(long inode) {
    changes.incrementAndGet(counter(inode));
    end(files.get(inode));
  }

  /** The owner says what a node is now. */
  void saw(Node node) {
    SourceFile file = files.get(node.inode());
    if (file != null && !file.version.equals(node.attributes().version())) {
      end(file);
    }
  }

  /** What the owner said of a file that is read here; null if none is. */
  @Nullable Node known(long inode) {
    SourceFile file = files.get(inode);
    return file == null ? null : new Node(inode, file.known);
  }

  private void end(@Nullable SourceFile file) {
    if (file != null) {
      synchronized (this) {
        files.remove(file.inode, file);
      }
      file.end();
    }
  }

  void close() {
    files.values().forEach(this::end);
    looks.end();
  }
}
