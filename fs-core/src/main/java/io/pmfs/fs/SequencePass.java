package io.pmfs.fs;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.stage.InodeBytes;
import io.pmfs.stage.Staging;
import io.pmfs.tier.FsException;
import io.pmfs.tier.SourceFile;
import io.pmfs.tier.SourceSequence;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Staging from a source that consists of sequences: each is passed over once, front to back, by one
 * thread. Only what is staged is counted and marked; the rest, failures too, is left to those who
 * take the files one by one.
 */
final class SequencePass {
  private static final Logger log = LoggerFactory.getLogger(SequencePass.class);

  /** The mark of a file that was staged and counted. */
  static final byte STAGED = 1;

  private final TaskSource source;
  private final Staging staging;
  private final RunningTask task;
  private final RequestedFiles files;
  private final InodeBytes marks;

  SequencePass(
      TaskSource source,
      Staging staging,
      RunningTask task,
      RequestedFiles files,
      InodeBytes marks) {
    this.source = source;
    this.staging = staging;
    this.task = task;
    this.files = files;
    this.marks = marks;
  }

  /** Passes over all sequences; does nothing if there are none. */
  void run() throws InterruptedException {
    int count = source.sequenceCount();
    AtomicInteger next = new AtomicInteger();
    task.join(
        task.startThreads(
            Math.min(source.jobs(), count),
            "sequence",
            () -> {
              for (int i; (i = next.getAndIncrement()) < count && !task.isCancelled(); ) {
                pass(i);
              }
            }));
  }

  private void pass(int index) {
    try (SourceSequence sequence = source.sequence(index)) {
      long directory = 0;
      for (FileName path; (path = sequence.next()) != null && !task.isCancelled(); ) {
        Inode inode = wanted(path);
        if (inode != null) {
          if (inode.parent() != directory) {
            directory = inode.parent();
            task.isIn(source.tree().path(directory));
          }
          stage(inode, sequence);
        }
      }
    } catch (FsException e) {
      log.warn("sequence {} is left; its files are read one by one: {}", index, e.getMessage());
    }
  }

  /** The inode of a file that was asked for and has no copy yet; else null. */
  private @Nullable Inode wanted(FileName path) {
    try {
      Inode inode = source.checked(source.tree().find(path));
      return files.contains(inode) && !staging.has(inode) ? inode : null;
    } catch (FsException e) {
      return null;
    }
  }

  private void stage(Inode inode, SourceSequence sequence) throws FsException {
    try (SourceFile file = sequence.open()) {
      Staging.Outcome outcome = staging.stage(inode, file);
      if (outcome.result() == Staging.Outcome.Result.STAGED) {
        marks.set(inode.number(), STAGED);
        task.counts.done.increment();
        task.counts.files.increment();
        task.counts.bytes.add(inode.attributes().size() - outcome.movedBytes());
      } else {
        task.counts.bytes.add(-outcome.movedBytes());
      }
    }
  }
}
