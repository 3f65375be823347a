package io.pmfs.fs;

import com.google.common.util.concurrent.Striped;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceAccess;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The POSIX access-control lists of the source's files: docs/decisions/0053. Each list is read from
 * the source itself, never from another node, and cached until the change time of its file changes.
 * Thread-safe.
 */
public final class AccessLists {
  private static final Logger log = LoggerFactory.getLogger(AccessLists.class);

  private static final int LOCKS = 1024;

  private static final FileName ROOT_PATH = FileName.of("");
  private static final FileName DEFAULT = FileName.of("system.posix_acl_default");
  private static final FileName NONE = FileName.of("");

  /** Without any of these bits the kernel ignores lists, at the source too. */
  private static final int GROUP_BITS = 070;

  // Names of counters in the namespace.
  private static final String FOUND = "access-lists/found";
  private static final String NONE_KEPT = "access-lists/none-kept-in-session";
  private static final String BY_KERNEL = "access-lists/by-kernel-in-session";

  private final Namespace namespace;
  private final BackingStore source;
  private final Importer importer;
  private final EntriesAhead ahead;

  /** Held while the source is asked, so that each inode is requested once. */
  private final Striped<Lock> locks = Striped.lazyWeakLock(LOCKS);

  private volatile @Nullable Boolean isKept;
  private volatile boolean isFound;

  AccessLists(Namespace namespace, BackingStore source, Importer importer, Executor threads) {
    this.namespace = namespace;
    this.source = source;
    this.importer = importer;
    this.ahead = new EntriesAhead(namespace, threads, this::of);
  }

  /**
   * Whether the source is known to have lists: its root has one or a default one, or a file looked
   * at in this or an earlier session had one.
   */
  public boolean areFound() {
    if (isFound || namespace.counter(FOUND) != null) {
      return true;
    }
    try {
      return of(Namespace.ROOT).size() > 0
          || source.extendedAttributes(ROOT_PATH).containsKey(DEFAULT);
    } catch (FsException e) {
      log.warn("cannot determine whether the source has access-control lists: {}", e.getMessage());
      return false;
    }
  }

  /**
   * Imports lists together with attributes from now on, because those of all files will be
   * requested.
   */
  public void follow() {
    importer.readLists(this::areKept);
  }

  /** Records that the kernel agreed to apply the lists in this session of the namespace. */
  public void applyByKernel() {
    namespace.putCounter(BY_KERNEL, namespace.session());
  }

  /** Whether the kernel applies the lists, at the request of this or an earlier process. */
  public boolean areAppliedByKernel() {
    return isThisSession(BY_KERNEL);
  }

  private boolean isThisSession(String counter) {
    Long session = namespace.counter(counter);
    return session != null && session == namespace.session();
  }

  /**
   * A file's list, as {@code system.posix_acl_access} has it; empty if it has none. Fails if the
   * source fails or has replaced the file.
   */
  public FileName of(long number) throws FsException {
    return of(importer.checked(number));
  }

  /** A file's list, for a reader who may continue with the other entries of its directory. */
  FileName forReader(long number) throws FsException {
    Inode inode = importer.checked(number);
    if (known(inode) == null) {
      ahead.asked(number, inode.parent());
    }
    return of(inode);
  }

  /** Null if the source must be asked. */
  private @Nullable FileName known(Inode inode) {
    FileName known = namespace.accessList(inode.number(), inode.attributes().changeTime());
    return known != null || mayHaveList(inode) ? known : NONE;
  }

  private FileName of(Inode inode) throws FsException {
    FileName known = known(inode);
    return known == null ? fetch(inode) : known;
  }

  /** A file's list, which is probably not kept yet. */
  public FileName fetch(long number) throws FsException {
    return fetch(importer.checked(number));
  }

  private FileName fetch(Inode inode) throws FsException {
    Lock lock = locks.get(inode.number());
    lock.lock();
    try {
      FileName known = known(inode);
      return known == null ? ask(inode) : known;
    } finally {
      lock.unlock();
    }
  }

  private FileName ask(Inode inode) throws FsException {
    long number = inode.number();
    SourceAccess now = source.access(importer.path(number));
    if (!inode.isFile(now.status().identity(), now.status().attributes())) {
      throw new FsException(Errno.ESTALE, "the source has replaced the file of inode " + number);
    }
    FileName list = now.list();
    // The list may be newer than the attributes; the newer one counts.
    namespace.putAccessList(number, inode.attributes().changeTime(), list);
    return list;
  }

  private boolean mayHaveList(Inode inode) {
    return inode.attributes().type() != FileType.SYMBOLIC_LINK
        && (inode.identity().device() != 0 || areKept());
  }

  /** Whether the file system of the source's root supports lists; true if unknown. */
  private boolean areKept() {
    Boolean known = isKept;
    if (known == null) {
      try {
        known = !isThisSession(NONE_KEPT) && source.access(ROOT_PATH).keepsLists();
      } catch (FsException e) {
        log.debug("the source's root: {}", e.getMessage());
        return true;
      }
      if (!known) {
        namespace.putCounter(NONE_KEPT, namespace.session());
      }
      isKept = known;
    }
    return known;
  }

  /**
   * The inode with its mode reduced to what its list allows every user, for a kernel that checks
   * only the mode.
   */
  public Inode withLeastRights(Inode inode) throws FsException {
    FileName list = (inode.attributes().mode() & GROUP_BITS) == 0 ? NONE : of(inode.number());
    if (list.size() == 0) {
      return inode;
    }
    noteFound(inode);
    Attributes now = inode.attributes();
    return inode.with(now.withMode(PosixAcl.leastMode(now.mode(), list.bytes())));
  }

  private void noteFound(Inode inode) {
    if (isFound) {
      return;
    }
    isFound = true;
    namespace.putCounter(FOUND, 1);
    log.warn(
        "{} has an access-control list. Until the next mount, which applies lists exactly, such"
            + " files show modes that grant no more than the list",
        namespace.path(inode.number()));
  }
}
