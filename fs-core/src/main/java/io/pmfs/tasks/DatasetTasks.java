package io.pmfs.tasks;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.source.BackingStore;
import io.pmfs.stage.Pace;
import io.pmfs.stage.Stager;
import io.pmfs.stage.Staging;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.Placement;
import io.pmfs.stage.copies.Share;
import io.pmfs.tier.Tier;
import java.time.Duration;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The tasks of a mounted dataset: staging, prefetching, comparing, verifying and evicting. */
public final class DatasetTasks implements FileTasks {
  /** Files processed at once by default; see docs/decisions/0015. */
  private static final int DEFAULT_JOBS = 32;

  /** Copies read and compared at once: enough for a local disk. */
  private static final int VERIFY_THREADS = 4;

  private static final Duration STOP = Duration.ofSeconds(30);

  private final PmfsFileSystem fileSystem;
  private final Namespace namespace;
  private final BackingStore source;
  private final Copies copies;
  private final Stager stager;
  private final ScratchFiles scratch;
  private final Runnable threadStart;
  private @Nullable RunningTask latest; // GUARDED_BY(this)
  private boolean closed; // GUARDED_BY(this)

  /**
   * Runs tasks on the given file system, copies and stager; close this before them.
   *
   * @param scratch creates the files of findings
   * @param threadStart run first by each thread of a task
   */
  public DatasetTasks(
      PmfsFileSystem fileSystem,
      Namespace namespace,
      BackingStore source,
      Copies copies,
      Stager stager,
      ScratchFiles scratch,
      Runnable threadStart) {
    this.fileSystem = fileSystem;
    this.namespace = namespace;
    this.source = source;
    this.copies = copies;
    this.stager = stager;
    this.scratch = scratch;
    this.threadStart = threadStart;
  }

  @Override
  public synchronized FileTask start(TaskRequest request) {
    if (closed) {
      throw new IllegalStateException("the dataset is being unmounted");
    }
    if (latest != null && !latest.isOver()) {
      throw new IllegalStateException("another task is running; wait for it or cancel it");
    }
    RunningTask task = new RunningTask(request, scratch, threadStart);
    task.start(work(request, task));
    if (latest != null) {
      latest.close();
    }
    latest = task;
    return task;
  }

  private RunningTask.Work work(TaskRequest request, RunningTask task) {
    if (request instanceof TaskRequest.Stage stage) {
      checkTier(stage.tier());
      int jobs = jobs(stage.limits());
      Pace pace = pace(stage.limits());
      Placement placement = new Placement(stage.tier(), stage.pin());
      Staging staging = stager.staging(placement, pace, task.counts.bytes::add);
      Predicate<Inode> included = included(stage.replicated() || stage.metadataOnly());
      return withSource(
          jobs,
          pace,
          (by, t) -> new StageWork(by, copies, staging, stage.metadataOnly(), included).run(t));
    }
    if (request instanceof TaskRequest.Check check) {
      Predicate<Inode> included = included(check.replicated());
      int jobs = check.deep() ? VERIFY_THREADS : DEFAULT_JOBS;
      return withSource(
          jobs,
          Pace.UNLIMITED,
          (by, t) -> new CheckWork(by, copies, included, check.deep()).run(t));
    }
    if (request instanceof TaskRequest.Evict) {
      return new EvictWork(new Tree(namespace, fileSystem.importer(), null, () -> false), stager);
    }
    if (request instanceof TaskRequest.Verify verify) {
      int jobs = verify.withSource() ? DEFAULT_JOBS : VERIFY_THREADS;
      return withSource(jobs, Pace.UNLIMITED, (by, t) -> new VerifyWork(by, copies, verify).run(t));
    }
    TaskRequest.Prefetch prefetch = (TaskRequest.Prefetch) request;
    int jobs = jobs(prefetch.limits());
    Pace pace = pace(prefetch.limits());
    Staging staging = stager.staging(Placement.ANYWHERE, pace, task.counts.bytes::add);
    return withSource(
        jobs,
        pace,
        (by, t) -> new PrefetchWork(by, fileSystem, staging, prefetch, System::nanoTime).run(t));
  }

  /** Excludes files of other nodes unless {@code replicated}: those nodes copy them. */
  private Predicate<Inode> included(boolean replicated) {
    Share share = stager.share();
    return replicated || share == Share.ALL ? inode -> true : share::isOwn;
  }

  private interface SourceWork {
    void run(TaskSource by, RunningTask task) throws InterruptedException;
  }

  private RunningTask.Work withSource(int jobs, Pace pace, SourceWork work) {
    return task -> {
      try (TaskSource by =
          new TaskSource(fileSystem, namespace, source, jobs, pace, task::isCancelled)) {
        work.run(by, task);
      }
    };
  }

  private void checkTier(@Nullable String name) {
    if (name != null && copies.tiers().stream().noneMatch(tier -> tier.name().equals(name))) {
      throw new IllegalArgumentException(
          "no tier named "
              + name
              + "; the tiers are "
              + copies.tiers().stream().map(Tier::name).collect(Collectors.joining(", ")));
    }
  }

  private static int jobs(TaskRequest.Limits limits) {
    return limits.jobs() == 0 ? DEFAULT_JOBS : limits.jobs();
  }

  private static Pace pace(TaskRequest.Limits limits) {
    return limits.maxBytesPerSecond() == 0 && limits.maxOperationsPerSecond() == 0
        ? Pace.UNLIMITED
        : new Pace(limits.maxBytesPerSecond(), limits.maxOperationsPerSecond(), System::nanoTime);
  }

  /** The running task, else the last one; null if there was none. */
  synchronized @Nullable FileTask latest() {
    return latest;
  }

  @Override
  public void close() {
    RunningTask running;
    synchronized (this) {
      closed = true;
      running = latest;
    }
    if (running != null) {
      running.cancel();
      try {
        running.await(STOP);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      running.close();
    }
  }
}
