package io.pmfs.pack;

import io.pmfs.posix.FsException;
import io.pmfs.shards.FailedTask;
import io.pmfs.source.BackingStore;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import org.jspecify.annotations.Nullable;

/**
 * Reads the files of one shard in pieces, in order, while other threads read ahead as far as there
 * are buffers. So a source with latency receives requests for many small files at once, and for
 * several pieces of a large one. Used by one thread.
 */
final class SourceReader implements AutoCloseable {
  /**
   * A piece of a file, read or failed.
   *
   * @param isFirst whether it is the first piece of the file
   * @param isLast whether it is the last piece of the file
   */
  record Piece(
      ReadFile file, boolean isFirst, boolean isLast, ByteBuffer bytes, FutureTask<Void> task) {
    /** Why the piece could not be read; null if it was read. Waits for the read. */
    @Nullable FsException failure() throws InterruptedException {
      try {
        task.get();
        return null;
      } catch (ExecutionException e) {
        if (e.getCause() instanceof FsException failure) {
          return failure;
        }
        throw FailedTask.unchecked(e.getCause());
      }
    }
  }

  private final BackingStore source;
  private final Iterator<PlannedFile> files;
  private final Executor readers;
  private final Deque<ByteBuffer> free;
  private final Deque<Piece> pieces = new ArrayDeque<>();

  /** The file that is being split into pieces. */
  private @Nullable ReadFile file;

  private long offset;

  /** The file whose piece was returned last. */
  private @Nullable ReadFile taken;

  /**
   * Starts to read.
   *
   * @param buffers direct, of equal size; nothing else may use them until this is closed
   */
  SourceReader(
      BackingStore source,
      Iterator<PlannedFile> files,
      Executor readers,
      List<ByteBuffer> buffers) {
    this.source = source;
    this.files = files;
    this.readers = readers;
    this.free = new ArrayDeque<>(buffers);
  }

  /**
   * The next piece, whose read may still be running; null after the last. The caller returns it by
   * {@link #giveBack}.
   */
  @Nullable Piece next() {
    while (!free.isEmpty() && (file != null || files.hasNext())) {
      startNext(free.remove());
    }
    Piece next = pieces.poll();
    taken = next == null ? null : next.file();
    return next;
  }

  private void startNext(ByteBuffer buffer) {
    ReadFile current = file;
    if (current == null) {
      PlannedFile planned = files.next();
      long count = Math.max(1, (planned.size + buffer.capacity() - 1) / buffer.capacity());
      current = new ReadFile(source, planned, Math.toIntExact(count));
      offset = 0;
    }
    ReadFile reading = current;
    long from = offset;
    long left = reading.planned.size - from;
    buffer.clear().limit((int) Math.min(buffer.capacity(), left));
    offset += buffer.limit();
    boolean isLast = offset == reading.planned.size;
    file = isLast ? null : reading;
    FutureTask<Void> task =
        new FutureTask<>(
            () -> {
              reading.read(from, buffer);
              return null;
            });
    pieces.add(new Piece(reading, from == 0, isLast, buffer, task));
    readers.execute(task);
  }

  /** Returns a piece whose bytes are no longer needed. */
  void giveBack(Piece piece) {
    free.add(piece.bytes());
  }

  @Override
  public void close() {
    boolean interrupted = false;
    for (Piece piece : pieces) {
      while (true) {
        try {
          var unused = piece.failure();
          break;
        } catch (InterruptedException e) {
          interrupted = true; // two users must never share the buffers
        } catch (RuntimeException e) {
          break; // the piece is no longer needed
        }
      }
    }
    pieces.forEach(piece -> piece.file().close());
    if (taken != null) {
      taken.close();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
