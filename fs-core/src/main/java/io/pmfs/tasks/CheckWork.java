package io.pmfs.tasks;

import io.pmfs.metadata.Inode;
import io.pmfs.posix.FsException;
import io.pmfs.stage.copies.Copies;
import java.util.List;
import java.util.function.Predicate;

/**
 * Reports the files of a request without a complete copy. Compares the records of copies with the
 * tiers.
 */
final class CheckWork implements RunningTask.Work {
  private final TaskSource source;
  private final Copies copies;
  private final Predicate<Inode> included;
  private final boolean deep;

  /**
   * Checks the files that {@code included} accepts.
   *
   * @param deep whether copies are read and compared with their checksums
   */
  CheckWork(TaskSource source, Copies copies, Predicate<Inode> included, boolean deep) {
    this.source = source;
    this.copies = copies;
    this.included = included;
    this.deep = deep;
  }

  @Override
  public void run(RunningTask task) throws InterruptedException {
    copies.keepDictionaries();
    RequestedFiles files = RequestedFiles.find(task, source.tree(), source.jobs(), included);
    List<Thread> counting = files.startCounting(source.jobs());
    files.forEach(source.jobs(), number -> check(task, number));
    task.join(counting);
    task.totalsAreFinal();
  }

  private void check(RunningTask task, long number) {
    long size = source.knownSize(number);
    try {
      check(task, source.checked(number));
    } catch (FsException e) {
      report(task, number, TaskFinding.Kind.FAILED, source.reason(e));
    }
    if (task.isCancelled()) {
      return;
    }
    long now = source.knownSize(number);
    task.counts.totalBytes.add(now - size);
    task.counts.bytes.add(now);
    task.counts.files.increment();
  }

  private void check(RunningTask task, Inode inode) {
    long number = inode.number();
    boolean isEmpty = inode.attributes().size() == 0;
    boolean isThere = isEmpty || copies.isThere(inode);
    String problem = "there is no copy";
    if (isThere && deep && !isEmpty) {
      problem = copies.compareAny(inode, bytes -> !task.isCancelled());
      isThere = problem == null;
    }
    if (task.isCancelled()) {
      return;
    }
    if (isThere) {
      task.counts.present.increment();
    } else if (copies.isOutdated(number)) {
      report(task, number, TaskFinding.Kind.STALE, "the file changed since it was copied");
    } else {
      report(task, number, TaskFinding.Kind.MISSING, String.valueOf(problem));
    }
  }

  private void report(RunningTask task, long number, TaskFinding.Kind kind, String reason) {
    task.report(source.tree().path(number), kind, reason);
  }
}
