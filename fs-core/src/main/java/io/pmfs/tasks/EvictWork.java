package io.pmfs.tasks;

import io.pmfs.metadata.Inode;
import io.pmfs.stage.Stager;
import java.util.List;

/**
 * Drops the copies of a request's files, as far as their names are known, without asking the
 * source.
 */
final class EvictWork implements RunningTask.Work {
  private static final int THREADS = 2;

  private final Tree tree;
  private final Stager stager;

  EvictWork(Tree tree, Stager stager) {
    this.tree = tree;
    this.stager = stager;
  }

  @Override
  public void run(RunningTask task) throws InterruptedException {
    RequestedFiles files = RequestedFiles.find(task, tree, THREADS);
    List<Thread> counting = files.startCounting(1);
    files.forEach(THREADS, number -> evict(task, number));
    task.join(counting);
    task.totalsAreFinal();
  }

  private void evict(RunningTask task, long number) {
    (stager.evict(number) ? task.counts.done : task.counts.present).increment();
    Inode inode = tree.inode(number);
    task.counts.bytes.add(inode == null ? 0 : inode.attributes().size());
    task.counts.files.increment();
  }
}
