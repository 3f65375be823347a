package io.pmfs.source;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The source of a dataset: the last place from which a read is answered, and the only one whose
 * errors reach the reader. Paths are below its root, with names joined by slashes, and empty for
 * the root; symbolic links are never followed. Thread-safe.
 */
public interface BackingStore extends AutoCloseable {
  /** Like lstat(2). */
  SourceStatus status(FileName path) throws FsException;

  /** Like {@link #status}, but from the source itself and never from another node. */
  default SourceStatus ownStatus(FileName path) throws FsException {
    return status(path);
  }

  /**
   * Whether names and attributes may come from other nodes. Then a file is {@link SourceFile#prove
   * proved} before it is read; if it is of another version, its {@link #ownStatus} counts.
   */
  default boolean isSecondHand() {
    return false;
  }

  /** Passes the names in a directory, without . and .., in batches until the consumer stops it. */
  void list(FileName directory, NameConsumer batches) throws FsException;

  /** Receives names. */
  interface NameConsumer {
    /** Returns whether to continue. */
    boolean accept(List<FileName> names);
  }

  /**
   * Passes names and the {@link #status} of each, in the same order, if the store gets both in one
   * request. Marks entries whose attributes {@link #status} still has to confirm.
   *
   * @return false, having passed nothing, if the store cannot: call {@link #status} for each name
   */
  default boolean listWithStatus(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException {
    return false;
  }

  /**
   * Whether {@link #listWithStatus} of a directory costs about as much as the {@link #status} of
   * one file: the entries are then better requested together.
   */
  default boolean listsAtOnce(FileName directory) {
    return false;
  }

  FileName readSymbolicLink(FileName path) throws FsException;

  /** Opens a regular file for reading. */
  SourceFile open(FileName path) throws FsException;

  /**
   * Like {@link #open}, for a store that may have another version of the file than the caller.
   *
   * @param expected the wanted version; ignored by a store that has the file itself, which opens
   *     the current one
   */
  default SourceFile openVersion(FileName path, SourceVersion expected) throws FsException {
    return open(path);
  }

  /** Whether open files may be able to {@link SourceFile#lend}. */
  default boolean lends() {
    return false;
  }

  /** All extended attributes that the daemon may read; empty if the file system has none. */
  Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException;

  /**
   * Who may use a file, from the source itself and never from another node. Fails unless the list
   * was read or there is none.
   */
  SourceAccess access(FileName path) throws FsException;

  StoreStatistics statistics() throws FsException;

  /** The number of {@link #sequence sequences} in the store; 0 if its files are independent. */
  default int sequenceCount() {
    return 0;
  }

  /**
   * Iterates over the files of one sequence, from the first; the sequences together contain all
   * regular files.
   *
   * @param window direct memory for reading; used by the sequence until it is closed
   * @param beforeRequest called before each request for the sequence's bytes, so that the caller
   *     can limit the pace
   */
  default SourceSequence sequence(int index, ByteBuffer window, Runnable beforeRequest)
      throws FsException {
    throw new IndexOutOfBoundsException(index);
  }

  @Override
  void close();
}
