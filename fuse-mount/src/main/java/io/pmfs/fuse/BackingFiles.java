package io.pmfs.fuse;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.posix.AvailableMemory;
import io.pmfs.posix.FsException;
import io.pmfs.source.LentFile;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The files that the kernel reads without the daemon, by inode. A copy is registered when its file
 * is first opened. It stays registered for later opens until the copy is removed or other
 * registrations displace it. An open file stays readable after its copy is deleted. Before a
 * registration is used again the copy is checked, because another program may have truncated it.
 *
 * <p>The kernel requires that all opens of an inode agree, and looks up the id at each open. While
 * an inode is open through the daemon, every further open goes through the daemon. While it is open
 * on a backing file, every further open uses the same backing file, whose registration therefore
 * stays although its copy may be gone. To the kernel each generation of a file is another inode:
 * opens of different generations need not agree.
 *
 * <p>The source may lend a file that has no copy: itself, or a copy that somebody else has. It is
 * registered while its inode is open, and given back when the kernel has it no more. The next open
 * gets the copy of the tier, if there is one by then.
 *
 * <p>A process that takes over another process's session takes over the open registrations from the
 * ledger. It does not know whether their copies still exist, so it removes each one at the last
 * close. Registrations that were not open are removed immediately.
 *
 * <p>INVARIANT: an id that was handed out stays registered until {@link #release} was called as
 * often as {@link #open}. If its process died before it answered, the ledger may count an open
 * twice; it never counts a close twice. No system call and no method of the file system is called
 * with the lock held: a copy may be removed, and reported as removed, while it is being looked up.
 */
final class BackingFiles {
  private static final Logger log = LoggerFactory.getLogger(BackingFiles.class);

  /** The file is read through the daemon. The kernel's ids start at 1. */
  static final int NONE = 0;

  private static final int NO_SLOT = -1;
  private static final int REGISTERED = 4096;

  /**
   * Concurrent opens that may ask the source: fewer than the workers reserved for names, which a
   * source that hangs must not occupy.
   */
  private static final int BORROWING = 4;

  /**
   * Files that are lent and not copied yet may take one part in this many of the memory that is
   * available to the reader: what the kernel reads is to stay there until it is copied, and so are
   * the copies.
   */
  private static final int SHARE_OF_MEMORY = 4;

  /** How long other opens wait for their turn, before they are answered without asking. */
  private static final long TURN_MS = 20;

  /** Registers files with the kernel. */
  interface Registry {
    /**
     * Registers a regular file of exactly that size.
     *
     * @return its id; {@link #NONE} if there is no such file
     * @throws FsException if the kernel does not accept the file
     */
    int register(Path file, long size) throws FsException;

    /** Registers an open file, which the caller may close afterwards. */
    int register(int descriptor, long size) throws FsException;

    /** Whether there is a regular file of exactly that size. */
    boolean isWhole(Path file, long size);

    void unregister(int id);
  }

  private static final class Backing {
    private final int id;
    private final long size;
    private final @Nullable LentFile lent;
    private long generation;
    private int slot = NO_SLOT;
    private int opens = 1;

    /** Whether to unregister it at the last close. */
    private boolean gone;

    /** Open once. The size is 0 if unknown, or if the file is read through the daemon. */
    Backing(int id, long size, @Nullable LentFile lent) {
      this.id = id;
      this.size = size;
      this.lent = lent;
      this.gone = lent != null;
    }

    boolean isSource() {
      return lent != null && !lent.isCopy();
    }

    static Backing throughUs() {
      return new Backing(NONE, 0, null);
    }

    static Backing inherited(BackingLedger.Entry entry) {
      Backing backing = new Backing(entry.id(), 0, null);
      backing.generation = entry.generation();
      backing.slot = entry.slot();
      backing.opens = entry.opens();
      backing.gone = true;
      return backing;
    }
  }

  private record KernelInode(long number, long generation) implements Comparable<KernelInode> {
    private static final Comparator<KernelInode> ORDER =
        Comparator.comparingLong(KernelInode::number).thenComparingLong(KernelInode::generation);

    @Override
    public int compareTo(KernelInode other) {
      return ORDER.compare(this, other);
    }
  }

  private final PmfsFileSystem fileSystem;
  private final Registry registry;
  private final int registeredMax;
  private final @Nullable BackingLedger ledger;
  private final @Nullable ReadModeChoice choice;
  private final Semaphore borrowing = new Semaphore(BORROWING);
  private final LongAdder left = new LongAdder();

  /** Opens, since the start, of copies that are not separate files. */
  private final LongAdder notFiles = new LongAdder();

  private final LongAdder leftBytes = new LongAdder();
  private final LongAdder leftSourceBytes = new LongAdder();
  private final NavigableMap<KernelInode, Backing> open = new TreeMap<>(); // GUARDED_BY(this)

  /** Registered but not open, by inode number, longest idle first. */
  private final Map<Long, Backing> idle = new LinkedHashMap<>(); // GUARDED_BY(this)

  /** How many entries of {@link #open} the kernel reads without the daemon. */
  private int passing; // GUARDED_BY(this)

  private boolean leaving; // GUARDED_BY(this); see leavesOpensToKernel
  private long copiesGone; // GUARDED_BY(this)
  private volatile @Nullable String unavailable;
  private volatile boolean lentRefused;

  /**
   * The backing files of one session.
   *
   * @param ledger passes open files on to the next process that serves the session; null if the
   *     session ends with this process
   * @param choice decides whether backing files are used; null if the user asked for them
   */
  BackingFiles(
      PmfsFileSystem fileSystem,
      Registry registry,
      @Nullable BackingLedger ledger,
      @Nullable ReadModeChoice choice) {
    this(fileSystem, registry, ledger, choice, REGISTERED);
  }

  /** Keeps at most {@code registeredMax} files registered that are not open. */
  BackingFiles(
      PmfsFileSystem fileSystem,
      Registry registry,
      @Nullable BackingLedger ledger,
      @Nullable ReadModeChoice choice,
      int registeredMax) {
    this.choice = choice;
    this.ledger = ledger;
    this.fileSystem = fileSystem;
    this.registry = registry;
    this.registeredMax = registeredMax;
    if (ledger != null) {
      inherit(ledger);
    }
    fileSystem.onCopyGone(this::copyGone);
  }

  private void inherit(BackingLedger from) {
    for (BackingLedger.Entry entry : from.entries()) {
      Backing backing = Backing.inherited(entry);
      if (backing.opens > 0) {
        opened(new KernelInode(entry.inode(), entry.generation()), backing);
      } else {
        from.remove(backing.slot);
        unregister(backing);
      }
    }
  }

  /** The read mode in effect; {@link ReadMode#AUTO} until one is chosen. */
  ReadMode readMode() {
    if (unavailable != null) {
      return ReadMode.PAGE_CACHE;
    }
    if (choice == null) {
      return ReadMode.PASSTHROUGH;
    }
    ReadModeChoice.Chosen chosen = choice.chosen();
    return chosen == null ? ReadMode.AUTO : chosen.mode();
  }

  /**
   * Why this mode is in effect, or passthrough is not; empty if the user asked for passthrough and
   * it is in effect.
   */
  String readModeReason() {
    if (unavailable != null) {
      return "no passthrough: " + unavailable;
    }
    if (choice == null) {
      return notInEffect();
    }
    ReadModeChoice.Chosen chosen = choice.chosen();
    return chosen == null
        ? "large copies are passed through; the mode for others is chosen once all names are known"
            + " or copies are read again"
        : chosen.reason();
  }

  /** A note if the kernel cannot read most of the opened copies; else empty. */
  private String notInEffect() {
    long others = notFiles.sum();
    long all = others + left.sum();
    return others <= all / 2
        ? ""
        : "hardly in effect: %,d of %,d opened copies are compressed, in a bundle or in a pool;"
                .formatted(others, all)
            + " to turn copies in bundles into files, run pmfs evict, then pmfs stage";
  }

  /**
   * Whether the answer to opens makes the kernel open all files without asking, which is final.
   * True in page-cache mode once no file is open in passthrough: otherwise the kernel would fail
   * further opens of such a file with EIO, and no longer report releases.
   */
  boolean leavesOpensToKernel() {
    if (readMode() != ReadMode.PAGE_CACHE) {
      return false;
    }
    List<Backing> unused;
    boolean isLeaving;
    synchronized (this) {
      leaving |= passing == 0;
      isLeaving = leaving;
      unused = List.copyOf(idle.values());
      idle.clear();
      unused.forEach(this::forget);
    }
    unused.forEach(this::unregister);
    return isLeaving;
  }

  void setUnavailable(String why) {
    if (unavailable == null) {
      unavailable = why;
      String line = "no passthrough: {}; files are read through the daemon and the page cache";
      if (choice == null) {
        log.warn(line, why);
      } else {
        log.info(line, why);
      }
    }
  }

  /**
   * Opens a file; returns the id of its backing file, or {@link #NONE} to read it through the
   * daemon.
   *
   * @param generation of the file as the kernel knows it
   * @param reader the process or thread that opens it; 0 if unknown
   */
  int open(long inode, long generation, long reader) throws FsException {
    if (isIdle(inode) && !isWhole(inode)) {
      copyGone(inode);
    }
    long goneBefore;
    synchronized (this) {
      Backing known = openKnown(inode, generation);
      if (known != null) {
        return known.id;
      }
      goneBefore = copiesGone;
    }
    Backing made = register(inode, reader);
    Backing chosen;
    synchronized (this) {
      chosen = openKnown(inode, generation);
      if (chosen == null) {
        // If a copy was removed meanwhile, it may be this one: usable for this open, but not kept.
        made.gone |= copiesGone != goneBefore;
        made.slot = ledger == null || leaving ? NO_SLOT : ledger.put(inode, generation, made.id);
        boolean isKnownLater = !leaving && (ledger == null || made.slot != NO_SLOT);
        chosen = isKnownLater ? made : Backing.throughUs();
        chosen.generation = generation;
        opened(new KernelInode(inode, generation), chosen);
        countBytes(chosen);
      }
    }
    if (chosen != made) {
      // Another thread opened it first, or the ledger has no room for it.
      unregister(made);
    }
    return chosen.id;
  }

  private synchronized boolean isIdle(long inode) {
    return idle.containsKey(inode);
  }

  private boolean isWhole(long number) throws FsException {
    Path file = fileSystem.copyFile(number);
    return file != null && registry.isWhole(file, fileSystem.inode(number).attributes().size());
  }

  /** Called with the lock held. */
  private @Nullable Backing openKnown(long inode, long generation) {
    KernelInode key = new KernelInode(inode, generation);
    Backing known = open.get(key);
    if (known == null) {
      known = idle.get(inode);
      if (known == null || known.generation != generation) {
        return null;
      }
      idle.remove(inode);
      opened(key, known);
    }
    count(known, 1);
    countBytes(known);
    return known;
  }

  /** Called with the lock held. */
  private void opened(KernelInode inode, Backing backing) {
    open.put(inode, backing);
    passing += backing.id == NONE ? 0 : 1;
  }

  /** Called with the lock held; returns the number of opens afterwards. */
  private int count(Backing backing, int more) {
    backing.opens += more;
    if (ledger != null) {
      ledger.setOpens(backing.slot, backing.opens);
    }
    return backing.opens;
  }

  private void countBytes(Backing backing) {
    (backing.isSource() ? leftSourceBytes : leftBytes).add(backing.size);
  }

  /** Undoes one {@link #open}. */
  void release(long inode, long generation) {
    KernelInode key = new KernelInode(inode, generation);
    Backing out = null;
    synchronized (this) {
      Backing known = open.get(key);
      if (known == null || count(known, -1) > 0) {
        return;
      }
      open.remove(key);
      passing -= known.id == NONE ? 0 : 1;
      if (known.gone || known.id == NONE) {
        out = forget(known);
      } else {
        Backing ofAnotherGeneration = idle.put(inode, known);
        if (ofAnotherGeneration != null) {
          out = forget(ofAnotherGeneration);
        } else if (idle.size() > registeredMax) {
          out = removeEldest();
        }
      }
    }
    unregister(out);
  }

  /** Called with the lock held. */
  private Backing removeEldest() {
    Iterator<Backing> eldestFirst = idle.values().iterator();
    Backing eldest = eldestFirst.next();
    eldestFirst.remove();
    return forget(eldest);
  }

  /** Called with the lock held; returns what to unregister. */
  private Backing forget(Backing backing) {
    if (ledger != null) {
      ledger.remove(backing.slot);
    }
    return backing;
  }

  private void copyGone(long inode) {
    Backing out;
    synchronized (this) {
      copiesGone++;
      open.subMap(new KernelInode(inode, 0), new KernelInode(inode + 1, 0))
          .values()
          .forEach(opened -> opened.gone = true);
      Backing known = idle.remove(inode);
      out = known == null ? null : forget(known);
    }
    unregister(out);
  }

  /** Registers the file of a copy, open once and without a slot. */
  private Backing register(long number, long reader) throws FsException {
    if (unavailable != null) {
      return Backing.throughUs();
    }
    Path file = fileSystem.copyFile(number);
    if (file == null) {
      if (fileSystem.hasCopyReadByUs(number)) {
        notFiles.increment();
        if (choice != null) {
          choice.copyOpened(number, fileSystem.inode(number).attributes().size(), false, reader);
        }
        return Backing.throughUs();
      }
      if (choice != null) {
        choice.fileOpened(reader);
      }
      return fileSystem.lends() ? registerLent(number, reader) : Backing.throughUs();
    }
    long size = fileSystem.inode(number).attributes().size();
    if (choice != null && !choice.copyOpened(number, size, true, reader)) {
      return Backing.throughUs();
    }
    try {
      return backing(registry.register(file, size), size, null);
    } catch (FsException e) {
      refused(e);
      return Backing.throughUs();
    }
  }

  private static Backing backing(int id, long size, @Nullable LentFile lent) {
    return id == NONE ? Backing.throughUs() : new Backing(id, size, lent);
  }

  private Backing registerLent(long number, long reader) throws FsException {
    long size = fileSystem.inode(number).attributes().size();
    boolean passes = !lentRefused && size > 0 && (choice == null || choice.passes(size));
    LentFile lent = passes ? borrow(number, reader) : null;
    if (lent == null) {
      return Backing.throughUs();
    }
    int id = NONE;
    try {
      id = registry.register(lent.descriptor(), size);
    } catch (FsException e) {
      refusedLent(e);
    } finally {
      if (id == NONE) {
        lent.close();
      } else {
        lent.closeDescriptor();
      }
    }
    return backing(id, size, lent);
  }

  private @Nullable LentFile borrow(long number, long reader) {
    try {
      if (!borrowing.tryAcquire(TURN_MS, TimeUnit.MILLISECONDS)) {
        return null;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return null;
    }
    try {
      return fileSystem.lend(number, AvailableMemory.HERE.bytes(reader) / SHARE_OF_MEMORY);
    } finally {
      borrowing.release();
    }
  }

  private void refused(FsException e) {
    switch (e.errno()) {
      case EPERM -> setUnavailable("the daemon lacks CAP_SYS_ADMIN");
      case ELOOP -> setUnavailable("the tier is on a stacked file system");
      // Temporary: the next file may succeed.
      case ENOMEM, ENFILE, EMFILE, EINTR -> log.warn("no passthrough for a file: {}", e.errno());
      default -> setUnavailable("the kernel refused a backing file: " + e.errno());
    }
  }

  /** Copies may be on another file system, which the kernel accepts. */
  private void refusedLent(FsException e) {
    switch (e.errno()) {
      case EPERM, ENOMEM, ENFILE, EMFILE, EINTR -> refused(e);
      default -> {
        lentRefused = true;
        log.info(
            "files without a copy are read through the daemon: the kernel refused one: {}",
            e.errno());
      }
    }
  }

  private void unregister(@Nullable Backing backing) {
    if (backing == null || backing.id == NONE) {
      return;
    }
    registry.unregister(backing.id);
    if (backing.lent != null) {
      backing.lent.close();
    }
  }

  /** Counts an open that was answered with a file for the kernel. */
  void countLeft() {
    left.increment();
  }

  /** How many opens were answered with a file for the kernel. */
  long left() {
    return left.sum();
  }

  /** The total size of the copies so opened; a file counts once for each open. */
  long leftBytes() {
    return leftBytes.sum();
  }

  /** The total size of the source's files so opened. */
  long leftSourceBytes() {
    return leftSourceBytes.sum();
  }

  /** Call before closing the device. */
  void close() {
    List<Backing> all;
    synchronized (this) {
      if (ledger != null) {
        ledger.close();
      }
      all = new ArrayList<>(idle.values());
      all.addAll(open.values());
      idle.clear();
      open.clear();
    }
    all.forEach(this::unregister);
  }
}
