package io.pmfs.shards;

import com.google.common.util.concurrent.Uninterruptibles;
import io.pmfs.memory.BufferPool;
import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceFile;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Builds the index of several shards: finds their members, scanning many shards at once, and sorts
 * them. Memory does not depend on the number of members; data that does not fit goes to files
 * beside the index.
 */
public final class IndexBuilder {
  private final BackingStore store;
  private final IndexForm form;
  private final int threads;
  private final Consumer<IndexProgress> progress;

  private final DirectMemory memory;

  /**
   * Prepares a build.
   *
   * @param store contains the shards
   * @param threads how many shards are read at once
   * @param progress called at intervals by any thread; must not block; an exception from it ends
   *     the build
   * @param memory for reading shards; no other task needs it yet
   */
  public IndexBuilder(
      BackingStore store,
      IndexForm form,
      int threads,
      Consumer<IndexProgress> progress,
      DirectMemory memory) {
    this.memory = memory;
    this.store = store;
    this.form = form;
    this.threads = threads;
    this.progress = progress;
  }

  /**
   * Builds the index of these files, in this order, and replaces an existing one.
   *
   * @param names paths of the shards in the store
   * @param index the path of the index
   * @throws ShardException if a shard is not a valid tar file, or the index cannot be written
   * @throws FsException if a shard cannot be read
   */
  public IndexSummary build(List<FileName> names, Path index) throws ShardException, FsException {
    List<Shard> shards = new ArrayList<>(names.size());
    for (FileName name : names) {
      shards.add(Shard.of(shards.size(), name, store.status(name).attributes()));
    }
    return write(shards, null, index);
  }

  /**
   * Builds the index of a source's shards, like {@link #build(List, Path)}.
   *
   * @param before an older index, from which unchanged shards are taken without reading them; null
   *     if there is none
   */
  IndexSummary build(ShardSet set, @Nullable ShardIndex before, Path index)
      throws ShardException, FsException {
    return write(set.shards(), before, index);
  }

  private IndexSummary write(List<Shard> shards, @Nullable ShardIndex before, Path index)
      throws ShardException, FsException {
    try (ShardFiles files = new ShardFiles(store, memory);
        IndexWriter writer = new IndexWriter(form, shards, store, index)) {
      scan(shards, before, files, writer);
      return writer.finish();
    } catch (IOException e) {
      throw new ShardException(
          index + ": the index of the shards cannot be written: " + e.getMessage(), e);
    }
  }

  private void scan(
      List<Shard> shards, @Nullable ShardIndex before, ShardFiles files, IndexWriter writer)
      throws ShardException, FsException, IOException {
    Count count = new Count(shards);
    ExecutorService pool =
        Executors.newFixedThreadPool(
            Math.max(1, Math.min(threads, shards.size())), DaemonThread.numbered("index"));
    CompletionService<Shard> scans = new ExecutorCompletionService<>(pool);
    try {
      shards.forEach(shard -> scans.submit(() -> add(shard, before, files, writer, count)));
      for (int done = 0; done < shards.size(); done++) {
        scans.take().get();
      }
    } catch (ExecutionException e) {
      throw failure(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ShardException("interrupted while indexing the shards", e);
    } finally {
      stop(pool, count);
    }
  }

  /** Waits for all scans: nothing is added to the index after this returns. */
  private static void stop(ExecutorService pool, Count count) {
    count.stopped = true;
    pool.shutdownNow();
    Uninterruptibles.awaitTerminationUninterruptibly(pool);
  }

  private Shard add(
      Shard shard, @Nullable ShardIndex before, ShardFiles files, IndexWriter writer, Count count)
      throws ShardException, FsException, IOException {
    FileName directory = writer.begin(shard);
    if (before != null && before.canLend(shard, form)) {
      before.lend(
          shard,
          directory,
          (path, member) -> {
            writer.member(path, member);
            count.members.increment();
          });
      count.bytes.add(shard.size());
    } else {
      scan(shard, directory, files, writer, count);
    }
    count.shards.increment();
    progress.accept(count.progress());
    return shard;
  }

  private void scan(
      Shard shard, FileName directory, ShardFiles files, IndexWriter writer, Count count)
      throws ShardException, FsException {
    ShardFiles.Opened opened = files.open(shard);
    try (SourceFile file = opened.file();
        BufferPool.Loan loan = memory.tasks().take(HeaderReader.MAX_BYTES)) {
      double stored = opened.size() == 0 ? 0 : (double) shard.size() / opened.size();
      MemberSink sink = new CountedSink(writer, count, stored);
      HeaderReader in = new HeaderReader(file, opened.size(), loan.buffer());
      new TarScanner(shard.number(), shard.name().toString(), in, sink)
          .scan(directory, form.nested());
      if (!shard.isVersion(file.status().attributes())) {
        throw new ShardException(
            shard.name() + ": changed while it was indexed; mount it once it is written");
      }
    }
  }

  private static ShardException failure(ExecutionException e) throws FsException, IOException {
    Throwable cause = e.getCause();
    if (cause instanceof FsException fs) {
      throw fs;
    }
    if (cause instanceof IOException io) {
      throw io;
    }
    if (cause instanceof ShardException shard) {
      return shard;
    }
    throw FailedTask.unchecked(cause);
  }

  /** The progress of all scans together. */
  private static final class Count {
    private final int totalShards;
    private final long totalBytes;
    private final LongAdder shards = new LongAdder();
    private final LongAdder bytes = new LongAdder();
    private final LongAdder members = new LongAdder();
    private volatile boolean stopped;

    Count(List<Shard> shards) {
      totalShards = shards.size();
      totalBytes = shards.stream().mapToLong(Shard::size).sum();
    }

    IndexProgress progress() {
      return new IndexProgress(
          shards.intValue(), totalShards, bytes.sum(), totalBytes, members.sum());
    }
  }

  /** Receives the members that one scan finds and adds them to the index. */
  private final class CountedSink implements MemberSink {
    private static final int MEMBERS_PER_REPORT = 4096;

    private final IndexWriter writer;
    private final Count count;
    private final double stored;
    private int unreported;

    /**
     * Counts the progress of a scan.
     *
     * @param stored bytes of the shard per byte of the tar file
     */
    CountedSink(IndexWriter writer, Count count, double stored) {
      this.stored = stored;
      this.writer = writer;
      this.count = count;
    }

    @Override
    public void member(FileName path, ShardMember member) throws ShardException {
      writer.member(path, member);
      count.members.increment();
    }

    @Override
    public void warn(Warning warning, String where) {
      writer.warn(warning, where);
    }

    @Override
    public void passed(long passed) throws ShardException {
      if (count.stopped) {
        throw new ShardException("another shard failed");
      }
      count.bytes.add((long) (passed * stored));
      if (++unreported == MEMBERS_PER_REPORT) {
        unreported = 0;
        progress.accept(count.progress());
      }
    }
  }
}
