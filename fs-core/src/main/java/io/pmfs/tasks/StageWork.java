package io.pmfs.tasks;

import io.pmfs.metadata.Inode;
import io.pmfs.posix.FsException;
import io.pmfs.stage.Staging;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.InodeBytes;
import java.util.List;
import java.util.function.Predicate;

/**
 * Stages a request's files with their attributes and extended attributes. Counting threads run
 * ahead and import unknown names; behind them files are copied in the order of the request. Files
 * of a source that consists of sequences come first, in the source's order.
 */
final class StageWork implements RunningTask.Work {
  private final TaskSource source;
  private final Copies copies;
  private final Staging staging;
  private final boolean metadataOnly;
  private final Predicate<Inode> included;

  /** Files already counted as staged, marked until the walk reaches their first name. */
  private final InodeBytes stagedInSequence = new InodeBytes();

  /**
   * Stages the files that {@code included} accepts.
   *
   * @param metadataOnly whether only names and attributes are imported
   */
  StageWork(
      TaskSource source,
      Copies copies,
      Staging staging,
      boolean metadataOnly,
      Predicate<Inode> included) {
    this.source = source;
    this.copies = copies;
    this.staging = staging;
    this.metadataOnly = metadataOnly;
    this.included = included;
  }

  @Override
  public void run(RunningTask task) throws InterruptedException {
    task.whenCancelled(staging::cancel);
    RequestedFiles files = RequestedFiles.find(task, source.tree(), source.jobs(), included);
    List<Thread> counting = files.startCounting(source.jobs());
    if (!metadataOnly) {
      copies.keepDictionaries();
      new SequencePass(source, staging, task, files, stagedInSequence).run();
    }
    files.forEach(source.jobs(), new Visitor(task), staging::help);
    task.join(counting);
    task.totalsAreFinal();
  }

  private final class Visitor implements RequestedFiles.Visitor {
    private final RunningTask task;

    Visitor(RunningTask task) {
      this.task = task;
    }

    @Override
    public void file(long number) {
      if (stagedInSequence.compareAndSet(number, SequencePass.STAGED, (byte) 0)) {
        return;
      }
      long size = source.knownSize(number);
      long moved = 0;
      try {
        Inode inode = source.checked(number);
        if (metadataOnly) {
          task.counts.done.increment();
        } else {
          Staging.Outcome outcome = staging.stage(inode);
          if (outcome.result() == Staging.Outcome.Result.SOURCE_FAILED && !task.isCancelled()) {
            moved = outcome.movedBytes();
            outcome = staging.stage(source.lookAgain(number));
          }
          moved += outcome.movedBytes();
          task.count(source.tree().path(number), outcome);
          if (outcome.result() == Staging.Outcome.Result.CANCELLED) {
            return;
          }
        }
        source.readExtendedAttributes(number);
      } catch (FsException e) {
        task.report(source.tree().path(number), TaskFinding.Kind.FAILED, source.reason(e));
      }
      long now = source.knownSize(number);
      task.counts.totalBytes.add(now - size);
      task.counts.bytes.add(now - moved);
      task.counts.files.increment();
    }

    private void report(long number, TaskFinding.Kind kind, String reason) {
      task.report(source.tree().path(number), kind, reason);
    }

    @Override
    public void directory(long number) {
      source.readExtendedAttributes(number);
    }

    @Override
    public void symbolicLink(long number) {
      try {
        source.readSymbolicLink(number);
        source.readExtendedAttributes(number);
      } catch (FsException e) {
        report(number, TaskFinding.Kind.FAILED, source.reason(e));
      }
    }
  }
}
