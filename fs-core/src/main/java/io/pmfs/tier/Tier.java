package io.pmfs.tier;

import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Set;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/**
 * A place that holds copies of files, identified by inode number, and in a bundle also by the
 * extent in their record. It may forget any copy at any time: absence is a return value, never an
 * error. A tier that fails shows this in its {@link #status} and holds nothing from then on.
 * Thread-safe.
 */
public interface Tier extends AutoCloseable {
  /** The tier's name in records and for users; stable across restarts. */
  String name();

  /**
   * Opens a copy for reading; null if it is absent.
   *
   * @param extent the copy's place in a bundle; null if it is a file
   * @throws IOException if this cannot be determined; the tier has {@link #fail failed} then
   */
  @Nullable CopyReader open(long number, @Nullable Extent extent) throws IOException;

  /**
   * The file that holds a raw copy from byte 0, for a kernel that reads it without pmfs; null if
   * there is none. It may be removed before it is opened.
   */
  default @Nullable Path file(long number) {
    return null;
  }

  /**
   * Whether a kernel that reads the tier's files without pmfs reads them in place, in directly
   * mapped memory, without using its page cache.
   */
  default boolean isDirect() {
    return false;
  }

  /**
   * Reserves room for a copy of this size; null if there is none or the tier accepts no copies.
   * Does not access the disk.
   */
  @Nullable CopyWriter create(long number, long sizeBytes);

  /**
   * Makes a whole copy in the tier of another process a copy of this tier, by a hard link: it uses
   * no further room on the disk, and stays if the other process removes its own. Its bytes are not
   * compared with anything, and it is not an error if it cannot be linked.
   *
   * @param number the inode number here
   * @param lent the copy in the other tier
   * @return null if it cannot be linked or the tier accepts no copies
   */
  default @Nullable Linked link(long number, Lent lent) {
    return null;
  }

  /**
   * A copy in the tier of another process.
   *
   * @param tier the directory of the dataset in that tier
   * @param number the inode number there
   * @param extent its place in a bundle; null if it is a file
   * @param sizeBytes its size
   */
  record Lent(Path tier, long number, @Nullable Extent extent, long sizeBytes) {}

  /**
   * A linked copy.
   *
   * @param extent its place in a bundle here; null if it is a file
   */
  record Linked(@Nullable Extent extent) {}

  /**
   * Whether a complete copy exists, as far as can be determined without reading it. An open file or
   * an earlier read is no proof.
   *
   * @param extent the copy's place in a bundle; null if it is a file
   * @param sizeBytes its size
   * @throws IOException if this cannot be determined; the tier has {@link #fail failed} then
   */
  boolean has(long number, @Nullable Extent extent, long sizeBytes) throws IOException;

  /**
   * Removes a copy, and releases its room even if its file was already removed. Open readers can
   * continue.
   *
   * @param extent the copy's place in a bundle; null if it is a file
   * @param sizeBytes its size when it was committed
   */
  void remove(long number, @Nullable Extent extent, long sizeBytes);

  /**
   * Bundles with so few wanted copies that moving these frees room. Removing a single copy from a
   * bundle frees none.
   */
  default Set<Long> sparseBundles() {
    return Set.of();
  }

  /**
   * Copies the content of an extent to the newest bundle, even beyond the capacity: the caller then
   * records the new extent and removes the old one.
   *
   * @param through direct memory of the extent's size
   * @return the new extent; null if it cannot be moved
   */
  default @Nullable Extent move(Extent extent, ByteBuffer through) {
    return null;
  }

  /** Whether a copy of this size could ever fit, if everything else were removed. */
  boolean couldHold(long sizeBytes);

  /** Turns the tier off for the rest of the session, with one line in the log. */
  void fail(String reason);

  /**
   * Reports that one of the tier's files could not be read or written. The tier decides whether it
   * has failed: a full disk still serves copies, and running out of descriptors proves nothing.
   */
  default void failed(IOException e) {
    fail(String.valueOf(e.getMessage()));
  }

  /** The number of failed reads and writes in this session. */
  default long errors() {
    return 0;
  }

  /** Whether {@link #fail} was called. */
  boolean hasFailed();

  /**
   * Starts counting the copies while the tier serves. Until the count is taken nothing is moved,
   * and no bundle of an earlier session is appended to or removed.
   */
  Census census();

  /**
   * A count of the copies. Its caller keeps the records, adds each copy once, and reports changes
   * to copies already added. Used by one thread at a time.
   */
  interface Census {
    /**
     * Passes the inode numbers of all copies that are files, in no order, and removes foreign
     * files. The visitor may {@link #discard} what it is shown; it returns false to stop.
     */
    void forEachFile(LongPredicate visitor) throws IOException;

    /** Removes a file that no record names. */
    void discard(long number) throws IOException;

    /** Adds a copy; {@code extent} is null if it is a file. */
    void add(@Nullable Extent extent, long sizeBytes);

    /** Subtracts a copy that was added and has been removed. */
    void subtract(@Nullable Extent extent, long sizeBytes);

    /**
     * Applies the count: all copies were added, and none is added or removed while this runs. The
     * tier adopts the counted numbers, and removes anything that was not counted.
     */
    void take() throws IOException;
  }

  TierStatus status();

  /**
   * The bytes that more copies can use before others must go: less than the capacity leaves if the
   * disk has less free; 0 while the tier accepts none because its disk is full or it has failed.
   * Waits only a moment for a disk that hangs, and then returns its last answer.
   */
  default long availableBytes() {
    TierStatus now = status();
    boolean accepts =
        now.state() == TierStatus.State.ON || now.state() == TierStatus.State.RECOVERING;
    return accepts ? Math.max(0, now.capacityBytes() - now.usedBytes()) : 0;
  }

  /** The counts to pass to the next session's tier; null if unknown. */
  default @Nullable Usage usage() {
    return null;
  }

  /**
   * The room that the copies of a tier use.
   *
   * @param fileBytes bytes used by copies that are not in bundles
   * @param copies the number of copies, including those in bundles
   */
  record Usage(long fileBytes, long copies) {
    public static final Usage NONE = new Usage(0, 0);
  }

  @Override
  void close();
}
