package io.pmfs.pack;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import io.pmfs.shards.FailedTask;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceStatus;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Walks a source from its root: some threads list directories, and equally many read attributes.
 * The queues are bounded, except for directories that were found and not listed yet.
 */
final class SourceWalk {
  /** Names whose attributes one thread reads at a time; several threads share a large directory. */
  private static final int BATCH_NAMES = 64;

  private final BackingStore source;
  private final int threads;
  private final PackProgress progress;

  // GUARDED_BY(this)
  private final List<PlannedDirectory> directories = new ArrayList<>();
  private final List<PlannedFile> files = new ArrayList<>();
  private final Map<FileIdentity, Integer> links = new HashMap<>();
  private final List<Unreadable> unreadable = new ArrayList<>();
  private final List<String> sockets = new ArrayList<>();
  private int listed;

  /** Directories that are not listed completely, and batches of names without attributes. */
  private int outstanding;

  private @Nullable Throwable failure;

  SourceWalk(BackingStore source, int threads, PackProgress progress) {
    this.source = source;
    this.threads = threads;
    this.progress = progress;
  }

  /**
   * Walks the whole source.
   *
   * @throws FsException if even the root cannot be read
   */
  SourceTree run() throws FsException, InterruptedException {
    add(new PlannedDirectory(null, FileName.of(""), source.status(FileName.of("")).attributes()));
    ExecutorService listers = Executors.newFixedThreadPool(threads);
    ExecutorService askers =
        new ThreadPoolExecutor(
            threads,
            threads,
            0,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(4 * threads),
            new ThreadPoolExecutor.CallerRunsPolicy());
    try {
      List<Future<?>> all = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        all.add(
            listers.submit(
                () -> {
                  listAll(askers);
                  return null;
                }));
      }
      for (Future<?> one : all) {
        one.get();
      }
    } catch (ExecutionException e) {
      throw FailedTask.unchecked(e.getCause());
    } finally {
      Parallel.stop(listers);
      Parallel.stop(askers);
    }
    synchronized (this) {
      if (failure != null) {
        throw FailedTask.unchecked(failure);
      }
      for (PlannedDirectory directory : directories) {
        if (directory.empty) {
          files.add(PlannedFile.placeOf(directory));
        }
      }
      return new SourceTree(directories, files, links.size(), unreadable, sockets);
    }
  }

  private void listAll(ExecutorService askers) throws InterruptedException {
    try {
      PlannedDirectory directory = take();
      while (directory != null) {
        list(directory, askers);
        finished();
        directory = take();
      }
    } catch (RuntimeException | Error e) {
      fail(e);
    }
  }

  private synchronized @Nullable PlannedDirectory take() throws InterruptedException {
    while (listed == directories.size() && outstanding > 0 && failure == null) {
      wait();
    }
    return failure != null || outstanding == 0 ? null : directories.get(listed++);
  }

  private synchronized void finished() {
    outstanding--;
    if (outstanding == 0) {
      notifyAll();
    }
  }

  private synchronized void fail(Throwable e) {
    failure = failure == null ? e : failure;
    notifyAll();
  }

  private synchronized void add(PlannedDirectory directory) {
    if (directory.parent != null) {
      directory.parent.empty = false;
    }
    directories.add(directory);
    outstanding++;
    notifyAll();
  }

  private void list(PlannedDirectory directory, ExecutorService askers) {
    try {
      source.list(
          directory.path,
          names -> {
            progress.checkNotCancelled();
            for (int from = 0; from < names.size(); from += BATCH_NAMES) {
              List<FileName> batch =
                  names.subList(from, Math.min(names.size(), from + BATCH_NAMES));
              synchronized (this) {
                outstanding++;
              }
              askers.execute(() -> ask(directory, batch));
            }
            return true;
          });
    } catch (FsException e) {
      addUnreadable(Unreadable.of(directory.path, e));
    }
  }

  private void ask(PlannedDirectory directory, List<FileName> names) {
    try {
      for (FileName name : names) {
        progress.checkNotCancelled();
        ask(directory, name);
      }
    } catch (RuntimeException | Error e) {
      fail(e);
    } finally {
      finished();
    }
  }

  private void ask(PlannedDirectory directory, FileName name) {
    FileName path = directory.path.resolve(name);
    try {
      SourceStatus status = source.status(path);
      Attributes attributes = status.attributes();
      switch (attributes.type()) {
        case DIRECTORY -> add(new PlannedDirectory(directory, path, attributes));
        case SOCKET -> {
          synchronized (this) {
            sockets.add(path.toString());
          }
        }
        default -> add(directory, name, status);
      }
    } catch (FsException e) {
      addUnreadable(Unreadable.of(path, e));
    }
  }

  private void add(PlannedDirectory directory, FileName name, SourceStatus status) {
    Attributes attributes = status.attributes();
    int link = attributes.linkCount() > 1 ? linkOf(status.identity()) : 0;
    PlannedFile file = PlannedFile.of(directory, name, attributes, link);
    synchronized (this) {
      directory.empty = false;
      files.add(file);
    }
    progress.found(attributes.type() == FileType.REGULAR ? attributes.size() : 0);
  }

  private synchronized int linkOf(FileIdentity identity) {
    return links.computeIfAbsent(identity, i -> links.size() + 1);
  }

  private synchronized void addUnreadable(Unreadable one) {
    unreadable.add(one);
  }
}
