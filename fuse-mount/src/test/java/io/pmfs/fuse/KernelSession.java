package io.pmfs.fuse;

import io.pmfs.fuse.protocol.AnswerBuffers;
import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.fuse.protocol.KernelChannel;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.NativeMemory;
import io.pmfs.fuse.system.Posix;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongPredicate;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;

/** A session without a kernel: a test sends requests to one worker, and its answers are kept. */
final class KernelSession implements AutoCloseable {
  private static final int VECTOR_SIZE = 16;

  /** An answer as the kernel would receive it. */
  static final class Answer {
    private final byte[] all;
    private final ByteBuffer buffer;

    private Answer(byte[] all) {
      this.all = all;
      this.buffer = ByteBuffer.wrap(all).order(ByteOrder.nativeOrder());
    }

    int length() {
      return buffer.getInt(0);
    }

    int error() {
      return buffer.getInt(4);
    }

    long unique() {
      return buffer.getLong(8);
    }

    /** The header and the body. */
    byte[] all() {
      return all;
    }

    ByteBuffer body() {
      return buffer.slice(16, all.length - 16).order(ByteOrder.nativeOrder());
    }

    byte[] bytes() {
      return Arrays.copyOfRange(all, 16, all.length);
    }

    /** The error; null for success. */
    @Nullable Errno errno() {
      return error() == 0 ? null : Errno.of(-error());
    }
  }

  private final BlockingQueue<byte[]> requests = new ArrayBlockingQueue<>(1);
  private final BlockingQueue<List<Answer>> done = new ArrayBlockingQueue<>(1);
  private List<Answer> answers = new ArrayList<>();
  private final KernelWorker served;
  private final Thread worker;
  final AtomicInteger endings = new AtomicInteger();

  /** Answers that came through a pipe. */
  final AtomicInteger piped = new AtomicInteger();

  private volatile Runnable whenPiped = () -> {};

  /** Runs an action when an answer is sent through a pipe. */
  void whenPiped(Runnable next) {
    whenPiped = next;
  }

  /** How many of the next answers the kernel rejects. */
  final AtomicInteger refusals = new AtomicInteger();

  KernelSession(RequestHandler operations) {
    this(operations, new RequestLatencies());
  }

  KernelSession(RequestHandler operations, RequestLatencies latencies) {
    served =
        new KernelWorker(
            new Channel(),
            operations,
            latencies,
            new RequestGate(),
            () -> {},
            endings::incrementAndGet,
            new AnswerBuffers(KernelProtocol.MAX_READ_BYTES));
    worker = new Thread(served);
    worker.setDaemon(true);
    worker.start();
  }

  private final class Channel implements KernelChannel {
    private boolean first = true;

    @Override
    public int receive(long buffer, int size) throws FsException {
      try {
        if (!first) {
          done.put(answers);
          answers = new ArrayList<>();
        }
        first = false;
        byte[] request = requests.take();
        if (request.length > size) {
          throw new AssertionError("the test's request does not fit the worker's buffer");
        }
        NativeMemory.view(buffer, size).put(request);
        return request == END ? -1 : request.length;
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }

    @Override
    public boolean send(long vectors, int count) throws FsException {
      ByteBuffer entries =
          NativeMemory.view(vectors, count * VECTOR_SIZE).order(ByteOrder.nativeOrder());
      int size = 0;
      for (int i = 0; i < count; i++) {
        size += Math.toIntExact(entries.getLong(i * VECTOR_SIZE + 8));
      }
      byte[] all = new byte[size];
      int at = 0;
      for (int i = 0; i < count; i++) {
        int length = Math.toIntExact(entries.getLong(i * VECTOR_SIZE + 8));
        NativeMemory.view(entries.getLong(i * VECTOR_SIZE), length).get(all, at, length);
        at += length;
      }
      return take(all);
    }

    @Override
    public boolean sendPiped(int pipe, int size) throws FsException {
      ByteBuffer all = ByteBuffer.allocateDirect(size);
      long address = Pointer.wrap(Posix.RUNTIME, all).address();
      int at = 0;
      while (at < size) {
        long count = LibC.INSTANCE.read(pipe, address + at, size - at);
        if (count <= 0) {
          throw new AssertionError("the pipe does not hold what is to be sent");
        }
        at += (int) count;
      }
      byte[] bytes = new byte[size];
      all.get(bytes);
      piped.incrementAndGet();
      whenPiped.run();
      return take(bytes);
    }

    private boolean take(byte[] answer) throws FsException {
      if (refusals.get() > 0 && refusals.getAndDecrement() > 0) {
        throw new FsException(Errno.ENOMEM, "the test refuses an answer");
      }
      boolean isNotice =
          ByteBuffer.wrap(answer).order(ByteOrder.nativeOrder()).getLong(KernelProtocol.OUT_UNIQUE)
              == 0;
      if (isNotice) {
        notices.add(answer);
      } else {
        answers.add(new Answer(answer));
      }
      return true;
    }
  }

  private static final byte[] END = {};

  /** Unsolicited messages. */
  final List<byte[]> notices = new CopyOnWriteArrayList<>();

  /** All answers that a request got. */
  List<Answer> askAll(byte[] request) {
    try {
      requests.put(request);
      List<Answer> got = done.poll(30, TimeUnit.SECONDS);
      if (got == null) {
        throw new AssertionError("the worker hangs, or has ended: alive " + worker.isAlive());
      }
      return got;
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** The one answer that a request got. */
  Answer ask(byte[] request) {
    List<Answer> got = askAll(request);
    if (got.size() != 1) {
      throw new AssertionError(got.size() + " answers to one request");
    }
    return got.get(0);
  }

  Answer ask(Opcode opcode, long node, byte[] body) {
    return ask(request(opcode.number(), node, body));
  }

  private static long lastUnique = 0;

  static byte[] request(int opcode, long node, byte[] body) {
    lastUnique += 2;
    return ByteBuffer.allocate(KernelProtocol.IN_HEADER_SIZE + body.length)
        .order(ByteOrder.nativeOrder())
        .putInt(KernelProtocol.IN_HEADER_SIZE + body.length)
        .putInt(opcode)
        .putLong(lastUnique)
        .putLong(node)
        .putInt(1000) // uid
        .putInt(1000) // gid
        .putInt(4711) // pid
        .putInt(0)
        .put(body)
        .array();
  }

  /** The waiting request, if it has waited at least this long. */
  @Nullable AskedRequest waiting(long leastNanos) {
    return served.waiting(leastNanos, System.nanoTime());
  }

  /** Ends the waiting request if its program was killed. */
  void endIfKilled(LongPredicate isKilled) throws FsException {
    served.endIfKilled(0, System.nanoTime(), isKilled);
  }

  /** Whether nothing awaits the end of the work once the session has ended. */
  boolean worksInVain() {
    return served.worksInVain();
  }

  boolean isWorking() {
    return worker.isAlive();
  }

  @Override
  public void close() {
    try {
      requests.put(END);
      worker.join(10_000);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
    if (worker.isAlive()) {
      throw new AssertionError("the worker does not end");
    }
  }
}
