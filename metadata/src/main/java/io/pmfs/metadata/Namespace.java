package io.pmfs.metadata;

import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Finds inodes by parent and name, lists directories, and remembers which tiers hold copies; says
 * nothing about bytes and never asks the source. Safe for use by many threads. Every method may
 * throw {@link NamespaceException}, and while the state fails {@link NamespaceLostException}.
 *
 * <p>A <em>session</em> is the time between one mount and its unmount, in which several processes
 * may open the namespace, one after the other. What an earlier session imported is kept, and each
 * inode remembers in which session it was last compared with the source.
 */
public interface Namespace extends AutoCloseable {
  /** The number of the root directory. */
  long ROOT = 1;

  /** This opening's number: 1 the first time, then rising. */
  int opening();

  /** The session's number, which is that of its first opening. */
  int session();

  /**
   * Whether the opening before ended with {@link #close} on this boot of the machine (or there was
   * none).
   */
  boolean stoppedCleanly();

  /** The inode, or null if there is none of that number. */
  @Nullable Inode inode(long number);

  /** Adds or replaces an inode. */
  void putInode(Inode inode);

  /**
   * Replaces an inode by what the change makes of it, in one step; the change may be tried several
   * times.
   *
   * @param change is given the inode, or null if there is none of that number; null leaves all as
   *     it is
   * @return the inode from then on
   */
  @Nullable Inode updateInode(long number, UnaryOperator<@Nullable Inode> change);

  /**
   * How often something that was known has been forgotten, because the state failed. What is absent
   * may be so only since then: it is to be asked for again, and {@link #seenIn} says where.
   */
  int losses();

  /** Why changes are not recorded for the next session now; null if they are. */
  @Nullable String failure();

  /** Tries to record again, if that failed; waits for the disk. */
  void recover();

  /** The directory in which an inode was seen in this session; 0 if that is not known. */
  long seenIn(long number);

  /**
   * The inode of a number that was lost and whose directory is listed again: if the file is there
   * by another number, it has both from now on. Null if it is not there.
   */
  @Nullable Inode adopt(long number);

  /** The entry of that name in an imported directory, or null. */
  @Nullable DirectoryEntry find(long directory, FileName name);

  /**
   * Passes the entries with positions above {@code afterPosition}, in order, to the visitor until
   * it declines one.
   */
  void list(long directory, long afterPosition, EntryVisitor visitor);

  /**
   * Starts to import a directory, or to import it again: its listing is emptied and its inode loses
   * its {@link Listing} at once, its names are kept until they are replaced or found gone. The
   * caller allows one import of a directory at a time and keeps readers of it waiting. An import
   * that is never finished leaves the directory without a {@link Listing}; it is imported again.
   */
  DirectoryImport beginImport(long directory);

  /**
   * The path of an inode below the root, names joined by slashes, empty for the root; null if it or
   * a parent is gone.
   */
  @Nullable FileName path(long number);

  /**
   * Forgets an inode, its names within it if it is a directory, its symbolic link target, extended
   * attributes and copy records.
   */
  void removeInode(long number);

  @Nullable FileName symbolicLinkTarget(long number);

  void putSymbolicLinkTarget(long number, FileName target);

  /**
   * The kept extended attributes, or null if none were ever put (an empty map says there are none).
   */
  @Nullable Map<FileName, byte[]> extendedAttributes(long number);

  void putExtendedAttributes(long number, Map<FileName, byte[]> attributes);

  void removeExtendedAttributes(long number);

  /** The copies of an inode, at most one per tier, in no particular order. */
  List<CopyRecord> copies(long number);

  /** The copy of an inode in one tier; null if there is none. */
  @Nullable CopyRecord copy(long number, String tier);

  void putCopy(long number, CopyRecord copy);

  void removeCopy(long number, String tier);

  /**
   * Passes every copy whose inode is at least {@code fromNumber}, in order of numbers, to the
   * visitor until it declines one.
   */
  void listCopies(long fromNumber, CopyVisitor visitor);

  /** The highest number given to an inode so far. */
  long lastNumber();

  /**
   * A number kept under a key by {@link #putCounter}, or null; such numbers survive, their meaning
   * is the caller's.
   */
  @Nullable Long counter(String key);

  void putCounter(String key, long value);

  /** Records the clean stop and closes. Idempotent. */
  @Override
  void close();

  /** Is shown entries; false ends the listing. It may read the namespace, not write or close it. */
  @FunctionalInterface
  interface EntryVisitor {
    boolean visit(DirectoryEntry entry);
  }

  /** Is shown copies; false ends the listing. It may read the namespace, not write or close it. */
  @FunctionalInterface
  interface CopyVisitor {
    boolean visit(long number, CopyRecord copy);
  }

  /** A running import of one directory. Not for use by several threads at once. */
  interface DirectoryImport {
    /**
     * Adds names in the order they are to be listed. A name that was there before with the same
     * source inode and file type keeps its number; a file with several hard links that is known by
     * another name gets that number, even if this name had one of its own; all others get new ones.
     * Inodes are written with the given attributes, checked in this session; an inode that keeps
     * its number keeps its {@link Listing}.
     *
     * <p>Returns, for entries that kept their number, the previous inodes, so that the caller can
     * see which versions changed.
     */
    List<Inode> add(List<SourceEntry> entries);

    /**
     * Ends the import: names that were not added are removed, and the directory's inode gets {@code
     * listing} and its attributes from {@code attributes}. Returns the entries that were removed,
     * and the former entries of names that now stand for another inode; their inodes are still
     * there. One whose parent and name still are those of the removed entry has no other name and
     * can be forgotten with {@link Namespace#removeInode}; any other lives on under the name it
     * has. So an import of nothing empties a directory before it is removed itself.
     */
    List<DirectoryEntry> finish(Attributes attributes, Listing listing);
  }
}
