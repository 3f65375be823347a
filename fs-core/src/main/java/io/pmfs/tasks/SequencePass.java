package io.pmfs.tasks;

import io.pmfs.memory.BufferPool;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceSequence;
import io.pmfs.stage.Staging;
import io.pmfs.stage.copies.InodeBytes;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Stages from a source that consists of sequences: one thread reads each, once, from front to back.
 * Counts and marks only staged files, and leaves the rest, including failures, to the threads that
 * stage single files.
 */
final class SequencePass {
  private static final Logger log = LoggerFactory.getLogger(SequencePass.class);

  /** The mark of a file that was staged and counted. */
  static final byte STAGED = 1;

  /** The mark of a file that is being staged: it may have a name in another sequence. */
  private static final byte TAKEN = 2;

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

  /** Reads all sequences; does nothing if there are none. */
  void run() throws InterruptedException {
    int count = source.sequenceCount();
    int threads = Math.min(Math.min(source.jobs(), Staging.MAX_SEQUENCES), count);
    AtomicInteger next = new AtomicInteger();
    task.runThreads(
        threads,
        "sequence",
        () -> {
          try (BufferPool.Loan window = staging.window(threads)) {
            for (int i;
                window != null && (i = next.getAndIncrement()) < count && !task.isCancelled(); ) {
              pass(i, window.buffer());
            }
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
        });
  }

  private void pass(int index, ByteBuffer window) {
    try (SourceSequence sequence = source.sequence(index, window)) {
      Membership membership = new Membership();
      for (FileName path; (path = sequence.next()) != null && !task.isCancelled(); ) {
        Inode inode = membership.wanted(path);
        if (inode != null) {
          stage(inode, sequence);
        }
      }
    } catch (FsException e) {
      log.warn(
          "stopped reading sequence {}, reading its files one by one: {}", index, e.getMessage());
    }
  }

  /** Selects the wanted files of a sequence; caches the result for the last file's directory. */
  private final class Membership {
    private FileName directory = FileName.of("");
    private boolean contained = files.contains(Namespace.ROOT);

    /** The inode of a file that was requested and has no copy yet; else null. */
    @Nullable Inode wanted(FileName path) {
      try {
        enter(path);
        long number = source.tree().find(path);
        if (!contained && !files.isNamed(number)) {
          return null;
        }
        Inode inode = source.checked(number);
        boolean isMine =
            files.isIncluded(inode)
                && !staging.has(inode)
                && marks.compareAndSet(number, (byte) 0, TAKEN);
        return isMine ? inode : null;
      } catch (FsException e) {
        return null;
      }
    }

    private void enter(FileName path) throws FsException {
      String text = path.toLatin1();
      FileName parent = FileName.ofLatin1(text.substring(0, Math.max(0, text.lastIndexOf('/'))));
      if (!parent.equals(directory)) {
        contained = files.contains(source.tree().find(parent));
        directory = parent;
        task.isIn(parent);
      }
    }
  }

  private void stage(Inode inode, SourceSequence sequence) throws FsException {
    byte mark = 0;
    try (SourceFile file = sequence.open()) {
      Staging.Outcome outcome = staging.stage(inode, file);
      if (outcome.result() == Staging.Outcome.Result.STAGED) {
        mark = STAGED;
        task.counts.done.increment();
        task.counts.files.increment();
        task.counts.bytes.add(inode.attributes().size() - outcome.movedBytes());
      } else {
        task.counts.bytes.add(-outcome.movedBytes());
      }
    } finally {
      marks.set(inode.number(), mark);
    }
  }
}
