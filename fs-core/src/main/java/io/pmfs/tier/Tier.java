package io.pmfs.tier;

import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
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
   * Removes a copy if it is there. Open readers go on.
   *
   * @param extent where it is; null if it is a file
   */
  void remove(long number, @Nullable Extent extent);

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
   * Compares what is there with what is known after an unclean stop: removes copies that are not
   * known, counts the rest, then takes new copies again.
   *
   * @param records the copies that are known
   */
  void recover(CopyRecords records);

  /** What is recorded of a tier's copies. */
  interface CopyRecords {
    /** Whether a copy that is a file is recorded. */
    boolean hasFile(long number);

    /** Shows the places of all copies in bundles. */
    void forEachExtent(Consumer<Extent> visitor);
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
   * @param bundles the bytes that are wanted of each bundle
   */
  record Usage(long fileBytes, long copies, Map<Long, Long> bundles) {
    public static final Usage NONE = new Usage(0, 0, Map.of());
  }

  @Override
  void close();
}
