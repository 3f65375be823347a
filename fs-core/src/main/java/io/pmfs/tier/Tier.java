package io.pmfs.tier;

import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Set;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/**
 * A place that holds copies of files, named by inode numbers, small ones also by where they are in
 * bundles of many, which their records say. It may forget any copy at any time: absence is a return
 * value, never an error. A place that fails says so in its {@link #status} and holds nothing from
 * then on. Safe for use by many threads.
 */
public interface Tier extends AutoCloseable {
  /** How it is known in records and to users; stable over restarts. */
  String name();

  /**
   * Opens a copy for reading; null if it is absent.
   *
   * @param extent where it is; null if it is a file
   * @throws IOException if it cannot be told; the tier has {@link #fail failed} then
   */
  @Nullable CopyReader open(long number, @Nullable Extent extent) throws IOException;

  /**
   * The file that holds a copy raw from byte 0, for a kernel that can read it without us; null if
   * there is none. It may be gone by the time it is opened.
   */
  default @Nullable Path file(long number) {
    return null;
  }

  /**
   * Whether a kernel that reads its files without us reads them where they lie, in memory that is
   * mapped directly: then its page cache is spared.
   */
  default boolean isDirect() {
    return false;
  }

  /**
   * Reserves room for a copy of so many bytes; null if there is none or the tier takes no copies.
   * Does not touch the disk.
   */
  @Nullable CopyWriter create(long number, long sizeBytes);

  /**
   * Whether a copy is there whole, as far as can be told without reading it; whatever is open or
   * was read before is no proof.
   *
   * @param extent where it is; null if it is a file
   * @param sizeBytes what it takes
   * @throws IOException if it cannot be told; the tier has {@link #fail failed} then
   */
  boolean has(long number, @Nullable Extent extent, long sizeBytes) throws IOException;

  /**
   * Removes a copy, and gives its room back also if its file was taken away before. Open readers go
   * on.
   *
   * @param extent where it is; null if it is a file
   * @param sizeBytes what it took when it was committed
   */
  void remove(long number, @Nullable Extent extent, long sizeBytes);

  /**
   * Bundles of which so little is wanted that moving it elsewhere makes room; a removal makes none
   * before the last copy of its bundle is removed.
   */
  default Set<Long> sparseBundles() {
    return Set.of();
  }

  /**
   * Copies what is in an extent to the newest bundle, though there may be no room for it: the
   * caller records it and removes the old one.
   *
   * @param through memory of the extent's size, direct
   * @return where it is now; null if it cannot be moved
   */
  default @Nullable Extent move(Extent extent, ByteBuffer through) {
    return null;
  }

  /** Whether a copy of that size could ever fit, were everything else removed. */
  boolean couldHold(long sizeBytes);

  /** Takes the tier out for the rest of the session, with one line in the log. */
  void fail(String reason);

  /**
   * Reports that one of its files could not be read or written. What that means for the tier is its
   * own affair: a disk that is full serves on, a process without descriptors says nothing of it.
   */
  default void failed(IOException e) {
    fail(String.valueOf(e.getMessage()));
  }

  /** How many of its reads and writes failed in this session. */
  default long errors() {
    return 0;
  }

  /** Whether {@link #fail} was called. */
  boolean hasFailed();

  /**
   * Begins to count the copies that are there, while the tier serves. Until the count is taken
   * nothing is moved, and no bundle of an earlier session is appended to or goes.
   */
  Census census();

  /**
   * A count of the copies that are there. Its caller keeps the records, shows it each copy once,
   * and tells it what changes among those that it has shown already. By one thread at a time.
   */
  interface Census {
    /**
     * Shows the inode numbers of all copies that are files, in no order. Other files in their place
     * are removed. The visitor may {@link #discard} what it is shown; false ends it.
     */
    void forEachFile(LongPredicate visitor) throws IOException;

    /** Removes a file that no record names. */
    void discard(long number) throws IOException;

    /** A copy is there; {@code extent} is null if it is a file. */
    void add(@Nullable Extent extent, long sizeBytes);

    /** A copy that was added is there no more. */
    void subtract(@Nullable Extent extent, long sizeBytes);

    /**
     * All copies were added, and none comes or goes while this runs: from now on the tier's numbers
     * are these, and what is in it besides them is removed.
     */
    void take() throws IOException;
  }

  TierStatus status();

  /** What there is, to be given to the next session's tier; null if that is not known. */
  default @Nullable Usage usage() {
    return null;
  }

  /**
   * What the copies of a tier take.
   *
   * @param fileBytes what those take that are not in bundles with others
   * @param copies how many there are, in bundles too
   */
  record Usage(long fileBytes, long copies) {
    public static final Usage NONE = new Usage(0, 0);
  }

  @Override
  void close();
}
