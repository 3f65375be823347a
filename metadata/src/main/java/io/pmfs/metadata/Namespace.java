package io.pmfs.metadata;

import io.pmfs.table.StateException;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Finds inodes by parent and name, lists directories, and records which tiers hold copies. It knows
 * nothing about contents and never accesses the source. Thread-safe. Every method may throw {@link
 * StateException}, and {@link NamespaceLostException} while the state fails.
 *
 * <p>A <em>session</em> is the time between one mount and its unmount, in which several processes
 * may open the namespace, one after the other. What an earlier session imported is kept, and each
 * inode records the session in which it was last compared with the source.
 */
public interface Namespace extends AutoCloseable {
  long ROOT = 1;

  /** The number of this opening: 1 the first time, then rising. */
  int opening();

  /** The session's number, which is the number of its first opening. */
  int session();

  /** Whether the previous opening ended with {@link #close} since the boot, or there was none. */
  boolean stoppedCleanly();

  /** The inode with that number; null if there is none. */
  @Nullable Inode inode(long number);

  /** The inode if it is known without reading the database; else null. Takes no lock. */
  default @Nullable Inode recentInode(long number) {
    return null;
  }

  /**
   * Replaces an inode with the result of the change, in one step; the change may be called several
   * times.
   *
   * @param change receives the inode, or null if there is none with that number; returns null to
   *     leave everything unchanged
   * @return the current inode afterwards
   */
  @Nullable Inode updateInode(long number, UnaryOperator<@Nullable Inode> change);

  /**
   * How often known data was forgotten because the state failed. After that, an absent inode may
   * only have been forgotten: fetch it again from the directory that {@link #seenIn} returns.
   */
  int losses();

  /** Why changes are not recorded for the next session at present; null if they are. */
  @Nullable String failure();

  /** Tries to resume recording after a failure; waits for the disk. */
  void recover();

  /** The directory in which an inode was seen in this session; 0 if not known. */
  long seenIn(long number);

  /**
   * Recovers the inode of a lost number after its directory was listed again. If the file got
   * another number, it has both from now on. Null if the file is not there.
   */
  @Nullable Inode adopt(long number);

  /**
   * The last recorded inode of a file with several names; null if there is none. If the source's
   * numbers change, it may be another file's by now.
   */
  @Nullable Inode linked(FileIdentity identity);

  /** Records that files have new numbers at the source, but are otherwise unchanged. */
  void noteRenumbered(int files);

  /**
   * How many files changed their numbers since the dataset's state began; the count of earlier
   * processes is rounded down to a power of two. 0 means that the source's numbers seem stable.
   */
  long renumbered();

  /** The entry with that name in an imported directory; null if there is none. */
  @Nullable DirectoryEntry find(long directory, FileName name);

  /**
   * Replaces an entry that was {@linkplain SourceEntry#unknown unknown} when its directory was
   * imported; does nothing if there is none.
   */
  void identify(long directory, SourceEntry entry);

  /**
   * Passes the entries with positions above {@code afterPosition}, in order, to the visitor until
   * the visitor returns false.
   */
  void list(long directory, long afterPosition, EntryVisitor visitor);

  /**
   * Starts to import a directory, for the first time or again. Empties its listing and removes its
   * inode's {@link Listing} at once; keeps its names until they are replaced or found to be gone.
   * The caller allows one import of a directory at a time and makes its readers wait. An import
   * that is never finished leaves the directory without a {@link Listing}; it is then imported
   * again.
   */
  DirectoryImport beginImport(long directory);

  /**
   * The path of an inode below the root, names joined by slashes, empty for the root; null if it or
   * a parent is gone.
   */
  @Nullable FileName path(long number);

  /**
   * The inodes from this number on that lost a name, in order, some at a time; some of them have
   * another name. Each is recorded in the same step in which it loses the name, and stays until it
   * is settled by {@link #removeNameless}.
   */
  List<Long> lostNames(long from);

  /**
   * Settles an inode that lost a name. If another of its names stands for it, it goes by that.
   * Otherwise it is removed with all that is recorded of it but its copies, and the names of a
   * directory are lost, too.
   *
   * @return whether there is no such inode now; its copies are then to be dropped, and it is to be
   *     reported as {@link #forgotten}
   */
  boolean removeNameless(long number);

  /** Nothing is left of these inodes, which lost their names. */
  void forgotten(List<Long> numbers);

  /** Passes the known inodes to the visitor, by number, until the visitor returns false. */
  void listInodes(Predicate<Inode> visitor);

  /**
   * The target recorded for a symbolic link at this change time, like all that was said of a file
   * beside its attributes; null if nothing was recorded for that time.
   */
  @Nullable FileName symbolicLinkTarget(long number, Instant changeTime);

  void putSymbolicLinkTarget(long number, Instant changeTime, FileName target);

  /** The extended attributes, empty if the file had none; null if none were recorded. */
  @Nullable Map<FileName, byte[]> extendedAttributes(long number, Instant changeTime);

  void putExtendedAttributes(long number, Instant changeTime, Map<FileName, byte[]> attributes);

  /**
   * The access-control list, in the form of {@code system.posix_acl_access}; empty if the file had
   * none; null if none was recorded.
   */
  @Nullable FileName accessList(long number, Instant changeTime);

  void putAccessList(long number, Instant changeTime, FileName list);

  /**
   * Targets, extended attributes and access-control lists that were put before survive the process
   * from now on; without this call, the last of them may be lost.
   */
  void recordAttributes();

  /** The copies of an inode, at most one per tier, in no particular order. */
  List<CopyRecord> copies(long number);

  /** The copy of an inode in one tier; null if there is none. */
  @Nullable CopyRecord copy(long number, String tier);

  void putCopy(long number, CopyRecord copy);

  void removeCopy(long number, String tier);

  /**
   * Passes every copy whose inode number is at least {@code fromNumber}, in order of inode numbers,
   * to the visitor until the visitor returns false.
   */
  void listCopies(long fromNumber, CopyVisitor visitor);

  /** The highest inode number assigned so far. */
  long lastNumber();

  /**
   * A number recorded under a key by {@link #putCounter}; null if there is none. Counters are
   * persistent; the caller defines their meaning.
   */
  @Nullable Long counter(String key);

  void putCounter(String key, long value);

  void removeCounter(String key);

  /** All counters whose keys begin with a prefix, by the rest of the key. */
  Map<String, Long> counters(String prefix);

  /** Records the clean stop and closes. Idempotent. */
  @Override
  void close();

  /**
   * Receives entries; returns false to end the listing. It may read the namespace, but not write or
   * close it.
   */
  @FunctionalInterface
  interface EntryVisitor {
    boolean visit(DirectoryEntry entry);
  }

  /**
   * Receives copies; returns false to end the listing. It may read the namespace, but not write or
   * close it.
   */
  @FunctionalInterface
  interface CopyVisitor {
    boolean visit(long number, CopyRecord copy);
  }

  /** A running import of one directory. Not for concurrent use. */
  interface DirectoryImport {
    /**
     * Adds names in the order of the listing. A name that existed before and stands for {@linkplain
     * Inode#continuesAs the same file} keeps its number. A file with several hard links that is
     * known under another name, with the same source inode, size and times, gets that name's
     * number, even if this name had another one. All other names get new numbers. Inodes are
     * written with the given attributes, as checked in this session if the entry is verified, else
     * as {@link Inode#NEVER} checked; an inode that keeps its number keeps its {@link Listing}. A
     * name that is unknown now, but was known before, keeps its inode as it was. Unverified entries
     * share no number, whatever identity they claim.
     *
     * <p>Returns the previous inodes of entries that kept their number, so that the caller can see
     * which versions changed.
     */
    List<Inode> add(List<SourceEntry> entries);

    /**
     * Ends the import: removes names that were not added, and gives the directory's inode {@code
     * listing} and {@code attributes}. The inodes of these names, and of those that came to stand
     * for another inode, still exist: see {@link Namespace#lostNames}.
     */
    void finish(Attributes attributes, Listing listing);
  }
}
