package io.pmfs.tasks;

import io.pmfs.fs.DirectoryReader;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.DaemonPool;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceSequence;
import io.pmfs.stage.Pace;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.concurrent.ExecutorService;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The source as used by one task: with several threads, at a pace. */
final class TaskSource implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(TaskSource.class);

  private final PmfsFileSystem fileSystem;
  private final Namespace namespace;
  private final BackingStore source;
  private final ExecutorService threads;
  private final int jobs;
  private final Pace pace;
  private final BooleanSupplier cancelled;
  private final Tree tree;
  private final Tree knownTree;

  TaskSource(
      PmfsFileSystem fileSystem,
      Namespace namespace,
      BackingStore source,
      int jobs,
      Pace pace,
      BooleanSupplier cancelled) {
    this.fileSystem = fileSystem;
    this.namespace = namespace;
    this.source = source;
    this.jobs = jobs;
    this.pace = pace;
    this.cancelled = cancelled;
    this.threads = new DaemonPool(jobs, "look");
    this.tree =
        new Tree(
            namespace,
            fileSystem.importer(),
            new DirectoryReader(
                source, threads, pace, cancelled, fileSystem.importer()::readsLists),
            cancelled);
    this.knownTree = new Tree(namespace, fileSystem.importer(), null, cancelled);
  }

  int jobs() {
    return jobs;
  }

  Tree tree() {
    return tree;
  }

  /** Only names that are already known. */
  Tree knownTree() {
    return knownTree;
  }

  /** The inode, compared with the source in this session. */
  Inode checked(long number) throws FsException {
    Inode known = namespace.inode(number);
    if (known == null || known.checkedIn() != namespace.session()) {
      pace.await(1, 0, cancelled);
    }
    return fileSystem.inode(number);
  }

  /** The inode, compared with the source now. */
  Inode lookAgain(long number) throws FsException {
    pace.await(1, 0, cancelled);
    return fileSystem.lookAgain(number);
  }

  /** Opens the file of an inode. */
  SourceFile open(Inode inode) throws FsException {
    pace.await(1, 0, cancelled);
    return source.open(tree.path(inode.number()));
  }

  int sequenceCount() {
    return source.sequenceCount();
  }

  SourceSequence sequence(int index, ByteBuffer window) throws FsException {
    pace.await(1, 0, cancelled);
    return source.sequence(index, window, () -> pace.await(1, 0, cancelled));
  }

  void readSymbolicLink(long number) throws FsException {
    Instant changeTime = checked(number).attributes().changeTime();
    if (namespace.symbolicLinkTarget(number, changeTime) == null) {
      pace.await(1, 0, cancelled);
    }
    fileSystem.readSymbolicLink(number);
  }

  /**
   * Caches the extended attributes and the access-control list of an inode. A failure is only
   * logged: later readers ask again.
   */
  void readExtendedAttributes(long number) {
    if (pace.isLimited() && !fileSystem.keptAttributes().isKept(number)) {
      pace.await(2, 0, cancelled);
    }
    try {
      fileSystem.keptAttributes().fetch(number);
      fileSystem.accessLists().fetch(number);
    } catch (FsException e) {
      log.debug("cannot cache extended attributes: {}", e.getMessage());
    }
  }

  /** The known size of a file; 0 if the file no longer exists. */
  long knownSize(long number) {
    Inode inode = namespace.inode(number);
    return inode == null ? 0 : inode.attributes().size();
  }

  /** Why the source failed, as text for the user. */
  String reason(FsException e) {
    return String.valueOf(e.getMessage());
  }

  @Override
  public void close() {
    threads.shutdown();
    namespace.recordAttributes();
  }
}
