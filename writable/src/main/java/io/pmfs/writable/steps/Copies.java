package io.pmfs.writable.steps;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Intent;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.places.DataCopy;
import io.pmfs.writable.places.DataPlace;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.places.RemoteData;
import io.pmfs.writable.tree.SourceTree;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies of announced contents at the source, complete under temporary names and made in advance.
 * Thread-safe.
 */
@SuppressWarnings("try")
public final class Copies implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Copies.class);

  private static final int TEMPORARY_MODE = 0600;

  /** How much a node copies in one request. */
  private static final int RANGE_BYTES = 16 << 20;

  private final State state;
  private final SourceTree tree;
  private final DataPlaces places;
  private final OutputCalls calls;
  private final Actors actors;
  private final Pace pace;
  private final Temporaries temporaries;
  private final SourceAttributes attributes;
  private final @Nullable ExecutorService threads;
  private final Map<Long, Future<Copy>> ahead = new ConcurrentHashMap<>();

  /**
   * A complete copy under a temporary name.
   *
   * @param directory the number of its directory
   * @param attributes that were set, but for the rights of others if it replaces a file
   * @param made the file; null if it is a further name of one
   */
  public record Copy(
      Change change, long directory, FileName name, Attributes attributes, @Nullable Stat made) {}

  public Copies(
      State state,
      SourceTree tree,
      DataPlaces places,
      Temporaries temporaries,
      Actors actors,
      Pace pace,
      int threadCount) {
    this.state = state;
    this.tree = tree;
    this.places = places;
    this.calls = tree.calls();
    this.actors = actors;
    this.pace = pace;
    this.temporaries = temporaries;
    this.attributes = new SourceAttributes(calls, actors);
    ThreadFactory copier = DaemonThread.numbered("pmfs-copier");
    this.threads =
        threadCount == 0
            ? null
            : Executors.newFixedThreadPool(
                threadCount,
                work ->
                    copier.newThread(
                        () -> {
                          calls.lowerPriority();
                          work.run();
                        }));
  }

  public int aheadCount() {
    return ahead.size();
  }

  public boolean isAhead(long sequence) {
    return ahead.containsKey(sequence);
  }

  /** Starts copying contents in advance, recorded in one update. */
  public void begin(List<Change.Content> changes) throws FsException {
    ExecutorService workers = threads;
    if (workers == null) {
      return;
    }
    Map<Change.Content, Long> untried = new LinkedHashMap<>();
    for (Change.Content change : changes) {
      Intent former = Intent.of(state, change);
      if (former != null && former.inode() != 0) {
        continue; // Its copy may have its name already, which is checked in its turn.
      }
      if (former != null) {
        // An earlier attempt left something to remove.
        begin(workers, change, () -> copy(change, nearest(change)));
      } else {
        untried.put(change, nearest(change));
      }
    }
    temporaries.record(untried);
    untried.forEach((change, where) -> begin(workers, change, () -> make(change, where)));
  }

  /** If no thread can be started, the content is copied in its turn. */
  private void begin(ExecutorService workers, Change.Content change, Callable<Copy> copying) {
    try {
      ahead.put(change.sequence(), workers.submit(copying));
    } catch (OutOfMemoryError e) {
      log.debug("inode {} is not copied ahead: {}", change.inode(), e.toString());
    }
  }

  /** The copy of a content, made now if it was not made in advance. */
  public Copy take(Change.Content change) throws FsException {
    Future<Copy> begun = ahead.remove(change.sequence());
    if (begun == null) {
      return copy(change, nearest(change));
    }
    try {
      Copy copy = begun.get();
      if (isThere(copy.directory())) {
        return copy;
      }
      return copy(change, nearest(change));
    } catch (ExecutionException | CancellationException e) {
      // The copy may have failed in a directory that the writer cannot write; now its own
      // directory exists.
      log.debug("copying inode {} ahead: {}", change.inode(), e.getMessage());
      return copy(change, nearest(change));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new FsException(Errno.EINTR, "copying inode " + change.inode(), e);
    }
  }

  /** Removes an unneeded copy once it is complete, because a running copy cannot be stopped. */
  public void discard(Change.Content change) throws FsException {
    Future<Copy> begun = ahead.remove(change.sequence());
    if (begun != null) {
      try {
        begun.get();
      } catch (ExecutionException e) {
        log.debug("copying inode {} ahead: {}", change.inode(), e.getMessage());
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new FsException(Errno.EINTR, "copying inode " + change.inode(), e);
      }
    }
    temporaries.settle(List.of(change));
  }

  /** The directory of the future file, or its nearest ancestor at the source. */
  private long nearest(Change.Content change) throws FsException {
    Inode inode = state.find(change.inode());
    At name = change.name();
    long known = inode == null ? WritableFileSystem.ROOT : inode.parent();
    long first = name == null ? known : name.directory();
    long at = change.isFirst() || inode == null || !inode.hasHome() ? first : inode.homeParent();
    while (at != WritableFileSystem.ROOT && at != 0) {
      Inode directory = state.find(at);
      if (directory == null) {
        break;
      }
      if (directory.hasHome()) {
        return at;
      }
      at = directory.parent();
    }
    return WritableFileSystem.ROOT;
  }

  private boolean isThere(long directory) throws FsException {
    Inode inode = state.find(directory);
    return directory == WritableFileSystem.ROOT || (inode != null && inode.hasHome());
  }

  private Copy copy(Change.Content change, long where) throws FsException {
    temporaries.removeTemporary(change);
    temporaries.record(Map.of(change, where));
    return make(change, where);
  }

  private Copy make(Change.Content change, long where) throws FsException {
    FileName name = temporaries.name(change.sequence());
    try (SourceTree.Directory directory = tree.open(where)) {
      int flags = OutputCalls.O_RDWR | OutputCalls.O_CREAT | OutputCalls.O_EXCL;
      int file;
      boolean isWriters = true;
      // Only for these calls, because the tables and the data file are not the user's.
      try (OutputCalls.Acting acting = actors.as(change)) {
        file = calls.open(directory.file(), name, flags, TEMPORARY_MODE);
      } catch (FsException e) {
        if (change.isFirst() || e.errno() != Errno.EACCES || tree.isForeign(where)) {
          throw e;
        }
        // The writer may change the file, but not its directory.
        file = calls.open(directory.file(), name, flags, TEMPORARY_MODE);
        isWriters = false;
      }
      try {
        boolean isCopied = copyAtNode(change, file, where, name);
        calls.truncate(file, isCopied ? change.size() : transfer(change, file, 0));
        try (OutputCalls.Acting acting = actors.as(change)) {
          if (!isWriters) {
            acting.close();
          }
          // Not by name, because others may change the directory.
          attributes.setAnnounced(tree.opened(file), change, acting);
        }
        calls.sync(file, false);
        Stat made = tree.opened(file).status(Inode.NO_NAME);
        return new Copy(change, where, name, change.attributes(), made);
      } catch (FsException e) {
        temporaries.giveBack(directory, change, e);
        throw e;
      } finally {
        calls.close(file);
      }
    }
  }

  /**
   * Copies a file at the source next to its new place, because it cannot be renamed there.
   *
   * @param there the file now
   */
  public Copy duplicate(Change.Rename change, SourceTree.Directory from, FileName name, Stat there)
      throws FsException {
    long where = change.to().directory();
    temporaries.removeTemporary(change);
    temporaries.record(Map.of(change, where));
    FileName temporary = temporaries.name(change.sequence());
    int flags = OutputCalls.O_RDWR | OutputCalls.O_CREAT | OutputCalls.O_EXCL;
    try (SourceTree.Directory to = tree.open(where)) {
      int source = calls.open(from.file(), name, OutputCalls.O_RDONLY, 0);
      try {
        tree.opened(source).require(there, name);
        int file;
        try (OutputCalls.Acting acting = actors.as(change)) {
          file = calls.open(to.file(), temporary, flags, TEMPORARY_MODE);
        }
        try {
          long size = there.attributes().size();
          DataCopy.copy(calls, source, file, 0, size, pace::take);
          calls.truncate(file, size);
          SourceTree.Directory opened = tree.opened(file);
          attributes.copyExtended(opened, calls.extendedAttributesToCopy(source));
          attributes.set(opened, there.attributes(), () -> {});
          calls.sync(file, false);
          Stat made = opened.status(Inode.NO_NAME);
          return new Copy(change, where, temporary, there.attributes(), made);
        } catch (FsException e) {
          temporaries.giveBack(to, change, e);
          throw e;
        } finally {
          calls.close(file);
        }
      } finally {
        calls.close(source);
      }
    }
  }

  /** Gives a file at the source the temporary name of a change as well. */
  public Copy link(Change.Content change, At home) throws FsException {
    temporaries.removeTemporary(change);
    temporaries.record(Map.of(change, home.directory()));
    FileName name = temporaries.name(change.sequence());
    try (SourceTree.Directory directory = tree.open(home.directory())) {
      attributes.asWriter(
          change,
          tree.isForeign(home.directory()),
          () -> calls.link(directory.file(), home.name(), directory.file(), name));
      return new Copy(change, home.directory(), name, change.attributes(), null);
    }
  }

  /**
   * Copies the data of an announced content, starting at an offset; preserves holes.
   *
   * @return where the content ends
   */
  public long transfer(Change.Content change, int to, long from) throws FsException {
    return transfer(change, to, from, false);
  }

  /**
   * Makes the node that keeps the data write them to the source.
   *
   * @return false if that is not possible: then the data go through this node
   */
  private boolean copyAtNode(Change.Content change, int to, long where, FileName name)
      throws FsException {
    RemoteData remote = change.generation() == 0 ? null : place(change).remote(id(change));
    if (remote == null) {
      return false;
    }
    NodeData.Target target =
        new NodeData.Target(
            tree.relativePath(where),
            name,
            calls.status(to, Inode.NO_NAME).inode(),
            change.uid(),
            change.gid());
    int range = pace.atOnce(RANGE_BYTES);
    for (long at = 0; at < change.size(); at += range) {
      int count = (int) Math.min(range, change.size() - at);
      pace.take(count);
      try {
        remote.copy(target, at, at + count);
      } catch (FsException e) {
        log.debug("inode {} is copied through this node: {}", change.inode(), e.getMessage());
        return false;
      }
    }
    return true;
  }

  private DataPlace place(Change.Content change) throws FsException {
    DataRow row = state.data(change.inode(), change.generation());
    if (row == null) {
      throw new FsException(Errno.EIO, "the data of inode " + change.inode() + " are gone");
    }
    return places.get(row.place());
  }

  private static NodeData.Id id(Change.Content change) {
    return new NodeData.Id(change.inode(), change.generation());
  }

  private long transfer(Change.Content change, int to, long from, boolean isOver)
      throws FsException {
    if (change.generation() != 0 && from < change.size()) {
      place(change).copy(id(change), to, from, change.size(), isOver, pace::take);
    }
    return change.size();
  }

  /** Copies into a file with other content; holes become zeros. Returns the end. */
  public long transferOver(Change.Content change, int to) throws FsException {
    return transfer(change, to, 0, true);
  }

  @Override
  public void close() {
    if (threads != null) {
      threads.shutdownNow();
    }
  }
}
