package io.pmfs.fs;

import io.pmfs.metadata.Inode;
import io.pmfs.stage.Copies;
import io.pmfs.tier.FsException;
import java.util.List;
import java.util.function.Predicate;

/** Saying which of a request's files have no copy. */
final class CheckWork implements RunningTask.Work {
  private final TaskSource source;
  private final Copies copies;
  private final Predicate<Inode> included;

  CheckWork(TaskSource source, Copies copies, Predicate<Inode> included) {
    this.source = source;
    this.copies = copies;
    this.included = included;
  }

  @Override
  public void run(RunningTask task) throws InterruptedException {
    RequestedFiles files = RequestedFiles.find(task, source.tree(), source.jobs(), included);
    List<Thread> counting = files.startCounting(source.jobs());
    files.forEach(source.jobs(), number -> check(task, number));
    task.join(counting);
    task.totalsAreFinal();
  }

  private void check(RunningTask task, long number) {
    long size = source.knownSize(number);
    try {
      Inode inode = source.checked(number);
      if (inode.attributes().size() == 0 || copies.has(inode)) {
        task.counts.present.increment();
      } else if (copies.isOutdated(number)) {
        task.report(
            source.tree().path(number),
            TaskFinding.Kind.STALE,
            "the file changed since it was copied");
      } else {
        task.report(source.tree().path(number), TaskFinding.Kind.MISSING, "there is no copy");
      }
    } catch (FsException e) {
      task.report(source.tree().path(number), TaskFinding.Kind.FAILED, source.reason(e));
    }
    long now = source.knownSize(number);
    task.counts.totalBytes.add(now - size);
    task.counts.bytes.add(now);
    task.counts.files.increment();
  }
}
