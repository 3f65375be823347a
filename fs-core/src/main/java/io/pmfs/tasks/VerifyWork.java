package io.pmfs.tasks;

import io.pmfs.memory.BufferPool;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.copies.Copies;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * Compares the copies of a request's files with their checksums and, on request, with the source's
 * bytes. Unknown names have no copies, so the source is not asked for them.
 */
final class VerifyWork implements RunningTask.Work {
  private final TaskSource source;
  private final Copies copies;
  private final TaskRequest.Verify request;

  VerifyWork(TaskSource source, Copies copies, TaskRequest.Verify request) {
    this.source = source;
    this.copies = copies;
    this.request = request;
  }

  @Override
  public void run(RunningTask task) throws InterruptedException {
    RequestedFiles files = RequestedFiles.find(task, source.knownTree(), source.jobs());
    List<Thread> counting = files.startCounting(1);
    files.forEach(source.jobs(), number -> verify(task, number));
    task.join(counting);
    task.totalsAreFinal();
  }

  private void verify(RunningTask task, long number) {
    long size = source.knownSize(number);
    Comparison comparison = new Comparison(task, number);
    try {
      List<CopyRecord> records = copies.records(number);
      if (records.isEmpty()) {
        task.counts.present.increment();
      } else {
        comparison.compare(records);
      }
    } catch (FsException e) {
      comparison.report(TaskFinding.Kind.FAILED, source.reason(e));
    } catch (IOException e) {
      comparison.report(TaskFinding.Kind.FAILED, "the tier failed: " + e.getMessage());
    }
    task.counts.bytes.add(size - comparison.moved);
    task.counts.files.increment();
  }

  /** Compares one file's copies. */
  private final class Comparison {
    private final RunningTask task;
    private final long number;
    private long moved;

    Comparison(RunningTask task, long number) {
      this.task = task;
      this.number = number;
    }

    void compare(List<CopyRecord> records) throws FsException, IOException {
      Inode inode = request.withSource() ? source.checked(number) : source.tree().inode(number);
      if (inode == null) {
        return;
      }
      boolean good = true;
      for (CopyRecord copy : records) {
        if (!copy.version().equals(inode.attributes().version())) {
          report(TaskFinding.Kind.STALE, "the file changed since it was copied");
          return;
        }
        String problem = copies.compare(inode, copy, this::goesOn);
        if (problem == null && request.withSource() && !task.isCancelled()) {
          problem = compareWithSource(inode, copy);
        }
        if (problem != null) {
          copies.reject(inode, copy, problem, request.repair());
          report(TaskFinding.Kind.BAD, "in tier " + copy.tier() + ": " + problem);
          good = false;
        }
      }
      if (good && !task.isCancelled() && !copies.isOutdated(number)) {
        task.counts.done.increment();
      }
    }

    private boolean goesOn(int bytes) {
      // Count at most the file's size, although it may be read twice.
      long counts = Math.min(bytes, Math.max(0, source.knownSize(number) - moved));
      moved += counts;
      task.counts.bytes.add(counts);
      return !task.isCancelled();
    }

    void report(TaskFinding.Kind kind, String reason) {
      task.report(source.tree().path(number), kind, reason);
    }

    /** Returns the difference, or null. The copy is known to match its checksums. */
    private @Nullable String compareWithSource(Inode inode, CopyRecord copy) throws FsException {
      try (SourceFile file = source.open(inode)) {
        int block = firstDifference(file, copy);
        SourceStatus now = file.status();
        if (!inode.isFile(now.identity(), now.attributes())
            || !now.attributes().version().equals(copy.version())) {
          source.lookAgain(number);
          report(TaskFinding.Kind.STALE, "the file changed since it was copied");
          return null;
        }
        return block < 0
            ? null
            : "the copy differs from the source in block "
                + block
                + " (blocks of "
                + copy.blockSize()
                + " bytes), although the file's size and modification time match";
      }
    }

    private int firstDifference(SourceFile file, CopyRecord copy) throws FsException {
      try (BufferPool.Loan loan =
          copies
              .memory()
              .tasks()
              .acquire(
                  (int) Math.min(copy.blockSize(), copy.version().size()), task::isCancelled)) {
        return loan == null ? -1 : firstDifference(file, copy, loan.buffer());
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return -1;
      }
    }

    private int firstDifference(SourceFile file, CopyRecord copy, ByteBuffer bytes)
        throws FsException {
      long size = copy.version().size();
      CRC32C crc = new CRC32C();
      for (int block = 0; block < copy.checksums().count() && !task.isCancelled(); block++) {
        long offset = (long) block * copy.blockSize();
        int expected = (int) Math.min(copy.blockSize(), size - offset);
        int count = file.read(offset, bytes.clear().limit(expected));
        crc.reset();
        crc.update(bytes.flip());
        if (count < expected || (int) crc.getValue() != copy.checksums().get(block)) {
          return block;
        }
      }
      return -1;
    }
  }
}
