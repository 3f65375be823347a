package io.pmfs.packing;

import io.pmfs.tier.BackingStore;
import io.pmfs.tier.FsException;
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
 * The files of one shard in pieces, in order, read ahead by other threads as far as there are
 * buffers. So a source with latency is asked for many small files at once, and for several pieces
 * of a large one. Used by one thread.
 */
final class ReadAhead implements AutoCloseable {
  /**
   * A piece of a file, read or failed.
   *
   * @param isFirst whether the file begins with it
   * @param isLast whether it ends with it
   */
  record Piece(
      ReadFile file, boolean isFirst, boolean isLast, ByteBuffer bytes, FutureTask<Void> task) {
    /** Why it could not be read; null if it was. Waits. */
    @Nullable FsException failure() throws InterruptedException {
      try {
        task.get();
        return null;
      } catch (ExecutionException e) {
        if (e.getCause() instanceof FsException failure) {
          return failure;
        }
        throw PackProgress.unchecked(e.getCause());
      }
    }
  }

  private final BackingStore source;
  private final Iterator<PlannedFile> files;
  private final Executor readers;
  private final Deque<ByteBuffer> free;
  private final Deque<Piece> pieces = new ArrayDeque<>();

  /** The file that is being cut into pieces, and how far. */
  private @Nullable ReadFile file;

  private long offset;

  /** The file whose piece was handed out last. */
  private @Nullable ReadFile taken;

  /**
   * Begins to read.
   *
   * @param buffers direct, of one size; nobody else's until this is closed
   */
  ReadAhead(
      BackingStore source,
      Iterator<PlannedFile> files,
      Executor readers,
      List<ByteBuffer> buffers) {
    this.source = source;
    this.files = files;
    this.readers = readers;
    this.free = new ArrayDeque<>(buffers);
  }

  /** The next piece, still being read perhaps; null after the last. To be given back. */
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

  /** Returns a piece whose bytes were used. */
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
          interrupted = true; // the buffers must not be used by two
        } catch (RuntimeException e) {
          break; // of a piece that nobody wants any more
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
