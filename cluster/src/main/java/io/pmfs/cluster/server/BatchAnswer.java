package io.pmfs.cluster.server;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.pmfs.cluster.peers.HttpLimits;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.cluster.peers.PeerFrames;
import io.pmfs.cluster.peers.PeerPath;
import io.pmfs.cluster.peers.Refusal;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.formats.Blocks;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers a batch with a frame for each file, in order. One worker sends the frames, and reads
 * files that no other worker has begun. When that takes long, for example because files come from
 * the source, other workers read ahead as far as memory permits. The first worker waits only for
 * files that are being read, so it does not depend on help.
 */
final class BatchAnswer {
  private static final Logger log = LoggerFactory.getLogger(BatchAnswer.class);

  /** Longer than it takes to read a whole batch from copies. */
  private static final long ALONE_NANOS = 5_000_000;

  /** After a file that took longer to read, the next one is not expected to be a copy either. */
  private static final long SLOW_NANOS = 1_000_000;

  private static final int SENT_BYTES = 256 << 10;
  private static final int HELPERS = 7;
  private static final int NO_TURN = -1;

  /** A file's bytes after their head, and how much memory was taken to keep them. */
  private record Frame(ByteBuf bytes, int taken) {}

  private final PeerService service;
  private final AnswerMemory memory;
  private final List<PeerFormat.BatchItem> items;
  private final PeerAnswer answer;
  private final AtomicInteger next = new AtomicInteger();
  private final AtomicReferenceArray<@Nullable Frame> frames;
  private CompositeByteBuf ready;
  private boolean ended; // GUARDED_BY(this)

  private BatchAnswer(
      PeerService service,
      AnswerMemory memory,
      List<PeerFormat.BatchItem> items,
      PeerAnswer answer) {
    this.service = service;
    this.memory = memory;
    this.items = items;
    this.answer = answer;
    this.ready = answer.compose(items.size());
    this.frames = new AtomicReferenceArray<>(items.size());
  }

  public static List<PeerFormat.BatchItem> items(byte[] body) throws Refusal {
    List<PeerFormat.BatchItem> items;
    try {
      items = PeerFormat.batch(Unpooled.wrappedBuffer(body), HttpLimits.MAX_BATCH_ITEMS);
    } catch (IllegalArgumentException e) {
      throw new Refusal(
          HttpResponseStatus.BAD_REQUEST, "the batch is malformed: " + e.getMessage());
    }
    long room = HttpLimits.MAX_BATCH_BYTES;
    for (PeerFormat.BatchItem item : items) {
      PeerPath.check(item.path());
      if (item.expected().size() > Blocks.SIZE) {
        throw new Refusal(
            HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE,
            "a file of more than 1 MiB must be requested on its own");
      }
      if (item.expected().size() > room) {
        throw new Refusal(
            HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE, "the batch asks for too many bytes");
      }
      room -= item.expected().size();
    }
    return items;
  }

  static void send(
      PeerService service,
      Executor helpers,
      AnswerMemory memory,
      List<PeerFormat.BatchItem> items,
      PeerAnswer answer) {
    BatchAnswer batch = new BatchAnswer(service, memory, items, answer);
    try {
      batch.send(helpers);
    } finally {
      batch.dropRest();
    }
  }

  private void send(Executor helpers) {
    long sinceNanos = System.nanoTime();
    boolean isAlone = true;
    int taken = 0;
    while (taken < items.size() && !answer.isGone()) {
      Frame frame = frames.getAndSet(taken, null);
      if (frame != null) {
        memory.release(frame.taken);
        ready.addComponent(true, frame.bytes);
        taken++;
        if (ready.readableBytes() >= SENT_BYTES) {
          flush();
        }
        continue;
      }
      long beforeNanos = System.nanoTime();
      if (!readNext(taken)) {
        flush();
        awaitFrame(taken);
      } else if (System.nanoTime() - beforeNanos > SLOW_NANOS) {
        flush();
      }
      if (isAlone && System.nanoTime() - sinceNanos > ALONE_NANOS) {
        isAlone = false;
        callHelpers(helpers);
      }
    }
    if (!answer.isGone()) {
      flush();
      answer.end();
    }
  }

  /** Sends all ready frames together, since each write costs more than a small file. */
  private void flush() {
    if (!answer.isHeadQueued()) {
      answer.beginFrames(PeerFormat.headers());
    }
    if (ready.isReadable()) {
      ByteBuf frames = ready;
      ready = answer.compose(items.size());
      answer.send(frames);
    }
  }

  private void callHelpers(Executor helpers) {
    int count = Math.min(HELPERS, items.size() - next.get());
    try {
      for (int i = 0; i < count; i++) {
        helpers.execute(
            () -> {
              while (!answer.isGone() && readNext(NO_TURN)) {}
            });
      }
    } catch (RejectedExecutionException e) {
      log.debug("no other worker helps with a batch: all are busy");
    }
  }

  /**
   * Reads the next file that no worker has begun.
   *
   * @param turn the index of the file that is sent next, for which no memory is taken
   * @return false if all files were begun, or there is no memory to keep the next one
   */
  private boolean readNext(int turn) {
    int index = next.get();
    while (index < items.size()) {
      int size =
          index == turn ? 0 : PeerFormat.FILE_HEAD_BYTES + (int) items.get(index).expected().size();
      if (!memory.tryTake(size)) {
        return false;
      }
      if (next.compareAndSet(index, index + 1)) {
        try {
          keep(index, new Frame(frame(items.get(index)), size));
        } catch (Throwable e) { // There is not even a refusal, and the sender waits for it.
          memory.release(size);
          answer.breakOff();
          throw e;
        }
        return true;
      }
      memory.release(size);
      index = next.get();
    }
    return false;
  }

  private synchronized void keep(int index, Frame frame) {
    if (ended) {
      drop(frame);
    } else {
      frames.set(index, frame);
      notifyAll();
    }
  }

  private void drop(Frame frame) {
    frame.bytes.release();
    memory.release(frame.taken);
  }

  private synchronized void awaitFrame(int index) {
    while (frames.get(index) == null && !answer.isGone()) {
      try {
        wait(500);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        answer.breakOff();
        return;
      }
    }
  }

  private synchronized void dropRest() {
    ended = true;
    ready.release();
    for (int i = 0; i < frames.length(); i++) {
      Frame frame = frames.getAndSet(i, null);
      if (frame != null) {
        drop(frame);
      }
    }
  }

  private ByteBuf frame(PeerFormat.BatchItem item) {
    try {
      return file(item);
    } catch (FsException e) {
      return DirectoryAnswer.refused(Refusal.of(e));
    } catch (PeerException e) {
      return DirectoryAnswer.refused(Refusal.of(e, item.onlyCopies()));
    } catch (Refusal e) {
      return DirectoryAnswer.refused(e);
    } catch (RuntimeException | Error e) {
      log.error("cannot answer a peer's request for {}", item.path(), e);
      return DirectoryAnswer.refused(
          new Refusal(
              HttpResponseStatus.INTERNAL_SERVER_ERROR, "an internal error; see this node's log"));
    }
  }

  private ByteBuf file(PeerFormat.BatchItem item) throws FsException, PeerException, Refusal {
    PeerService.Content content =
        service.open(item.path(), item.expected(), item.onlyCopies(), null);
    SourceStatus status = content.status();
    if (!status.attributes().version().equals(item.expected())) {
      throw new Refusal(
          HttpResponseStatus.PRECONDITION_FAILED, "this node has another version of the file");
    }
    int size = Math.toIntExact(item.expected().size());
    ByteBuf out = answer.allocate(PeerFormat.FILE_HEAD_BYTES + size);
    try {
      out.writeByte(PeerFrames.FILE);
      PeerFormat.putStatus(out, status);
      out.writeInt(size).writeInt(0);
      PeerResponder.collect(content, 0, size, out);
      OptionalInt recorded =
          size > 0 && size <= Blocks.SIZE ? content.checksum(0) : OptionalInt.empty();
      int sum =
          recorded.isPresent()
              ? recorded.getAsInt()
              : Blocks.checksum(out.nioBuffer(PeerFormat.FILE_HEAD_BYTES, size));
      out.setInt(PeerFormat.FILE_HEAD_BYTES - Integer.BYTES, sum);
      return out;
    } catch (Throwable e) {
      out.release();
      throw e;
    }
  }
}
