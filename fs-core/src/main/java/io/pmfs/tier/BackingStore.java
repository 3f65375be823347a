package io.pmfs.tier;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The source of a dataset: the last place a read is answered from, and the one whose errors are
 * errors. Paths are below its root, names joined by slashes, the root itself empty; symbolic links
 * are never followed. Safe for use by many threads.
 */
public interface BackingStore extends AutoCloseable {
  /** As lstat(2). */
  SourceStatus status(FileName path) throws FsException;

  /** Hands the names of a directory, but for . and .., in batches, until it is told to stop. */
  void list(FileName directory, NameConsumer batches) throws FsException;

  /** Takes names. */
  interface NameConsumer {
    /** Whether there are to be more. */
    boolean accept(List<FileName> names);
  }

  /**
   * Hands names and what {@link #status} says of each, in the same order, where both come at once.
   *
   * @return false, and nothing was handed, if they do not: ask for each
   */
  default boolean listWithStatus(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException {
    return false;
  }

  /**
   * Whether {@link #listWithStatus} of a directory costs about as much as the {@link #status} of
   * one file: then what is in it is better asked for together.
   */
  default boolean listsAtOnce(FileName directory) {
    return false;
  }

  FileName readSymbolicLink(FileName path) throws FsException;

  /** Opens a regular file for reading. */
  SourceFile open(FileName path) throws FsException;

  /**
   * The same for a store that may know another version of the file than the caller.
   *
   * @param expected the version that is wanted; a store with the file itself opens what there is
   */
  default SourceFile openVersion(FileName path, SourceVersion expected) throws FsException {
    return open(path);
  }

  /** All extended attributes that the daemon may read; empty where the file system has none. */
  Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException;

  StoreStatistics statistics() throws FsException;

  /**
   * How many {@link #sequence sequences} the store consists of; 0 if each of its files lies on its
   * own.
   */
  default int sequenceCount() {
    return 0;
  }

  /**
   * A pass over the files of one sequence, from the first; together they have all regular files.
   *
   * @param window memory to read through, direct; the sequence's until it is closed
   * @param beforeRequest called before each request for the sequence's bytes: who passes over it
   *     has a pace
   */
  default SourceSequence sequence(int index, ByteBuffer window, Runnable beforeRequest)
      throws FsException {
    throw new IndexOutOfBoundsException(index);
  }

  @Override
  void close();
}
