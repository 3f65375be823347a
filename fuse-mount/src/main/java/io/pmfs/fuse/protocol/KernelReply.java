package io.pmfs.fuse.protocol;

import io.pmfs.fuse.system.Pipe;
import io.pmfs.fuse.system.Posix;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.atomic.AtomicLong;
import jnr.ffi.Pointer;

/**
 * A worker's answer to its current request: a header, followed by bytes in the worker's own buffer
 * or by memory of a tier, which is sent without copying. Sent at most once: by the worker, or by
 * another thread that {@linkplain #interrupt ends} the request.
 */
public final class KernelReply implements ReadSink, AutoCloseable {
  /** Where the data after the header is built. */
  public static final int BODY = KernelProtocol.OUT_HEADER_SIZE;

  private static final int FIRST_BODY_BYTES = 128 * 1024;

  /** Copying is cheaper for smaller answers. */
  private static final int LEAST_PIPED_BYTES = 32 * 1024;

  private static final int VECTOR_SIZE = 16;

  private static final int INVAL_INODE_SIZE = 24;

  /** A negative offset, fuse_reverse_inval_inode. */
  private static final long KEEP_PAGES = -1;

  private final KernelChannel channel;
  private final AnswerBuffers buffers;
  private final Pipe pipe = new Pipe();
  private ByteBuffer out;
  private final ByteBuffer vectors =
      ByteBuffer.allocateDirect(2 * VECTOR_SIZE).order(ByteOrder.nativeOrder());
  private long outAddress;
  private final long vectorsAddress;

  private static final long ANSWERED = 0;

  /** Another thread is ending the request. */
  private static final long ENDING = -1;

  /** Another thread has ended the request. */
  private static final long ENDED = -3;

  /** The number of the request, which any thread may end; or one of these. */
  private final AtomicLong state = new AtomicLong();

  private long unique;
  private boolean answered;
  private int expected;
  private int collected;

  public KernelReply(KernelChannel channel, AnswerBuffers buffers) {
    this.channel = channel;
    this.buffers = buffers;
    grow(FIRST_BODY_BYTES);
    this.vectorsAddress = Pointer.wrap(Posix.RUNTIME, vectors).address();
  }

  /**
   * Grows the buffer. Allocating direct memory fills it with zeros: allocate no more than requests
   * need.
   */
  private void grow(int bodySize) {
    out = buffers.take(BODY + bodySize);
    outAddress = Pointer.wrap(Posix.RUNTIME, out).address();
  }

  public void begin(long unique) {
    this.unique = unique;
    answered = false;
    expected = 0;
    collected = 0;
    state.setRelease(unique);
  }

  public boolean isAnswered() {
    return answered;
  }

  /** The errno of the answer: 0 for success, EIO if the request could not be answered. */
  public int errno() {
    return answered ? -out.getInt(KernelProtocol.OUT_ERROR) : Errno.EIO.number();
  }

  int bodySize() {
    return out.getInt(KernelProtocol.OUT_LENGTH) - BODY;
  }

  /** For requests that expect no answer. */
  public void noAnswer() {
    answered = true;
    state.setRelease(ANSWERED);
  }

  /** Whether a request has no answer yet. Thread-safe. */
  public boolean isAwaited() {
    long now = state.getAcquire();
    return now != ANSWERED && now != ENDING && now != ENDED;
  }

  /** Whether the worker has answered its last request itself. Thread-safe. */
  public boolean isSent() {
    return state.getAcquire() == ANSWERED;
  }

  /** The number of the request if it can be ended early; 0 if it cannot. Thread-safe. */
  public long interruptible() {
    long now = state.getAcquire();
    return now == ENDING || now == ENDED ? ANSWERED : now;
  }

  /**
   * Ends a request with EINTR, unless it has an answer; the worker's own answer is then dropped.
   * Thread-safe.
   *
   * @param number what {@link #interruptible} said
   */
  public void interrupt(long number) throws FsException {
    if (number == ANSWERED || !state.compareAndSet(number, ENDING)) {
      return;
    }
    long left = number;
    try {
      ByteBuffer answer =
          ByteBuffer.allocateDirect(BODY + VECTOR_SIZE).order(ByteOrder.nativeOrder());
      long address = Pointer.wrap(Posix.RUNTIME, answer).address();
      putHeader(answer, number, -Errno.EINTR.number(), 0);
      answer.putLong(BODY, address).putLong(BODY + 8, BODY);
      channel.send(address + BODY, 1);
      left = ENDED;
    } finally {
      state.setRelease(left);
    }
  }

  /** Takes the right to answer; returns false if another thread has ended the request. */
  private boolean mayAnswer() {
    while (!state.compareAndSet(unique, ANSWERED)) {
      long now = state.getAcquire();
      if (now == ENDED || now == ANSWERED) {
        header(-Errno.EINTR.number(), 0);
        answered = true;
        return false;
      }
      Thread.onSpinWait(); // Another thread is ending it.
    }
    return true;
  }

  /**
   * The worker's buffer, to be filled from {@link #BODY} on: {@value #FIRST_BODY_BYTES} bytes, or
   * more if more were requested.
   */
  public ByteBuffer body() {
    return out;
  }

  /** The worker's buffer with room for {@code size} bytes, at most {@link #bodyLimit}. */
  public ByteBuffer body(int size) {
    if (size > out.capacity() - BODY) {
      grow(bodyLimit());
    }
    return out;
  }

  /** The most bytes that may follow the header. */
  public int bodyLimit() {
    return buffers.maxBytes();
  }

  /**
   * Answers with the first {@code bodySize} bytes of the body.
   *
   * @throws FsException with EINTR if the request was ended, so that the kernel knows nothing of it
   */
  public void send(int bodySize) throws FsException {
    header(0, bodySize);
    vector(0, outAddress, BODY + bodySize);
    if (!sendVectors(1)) {
      throw new FsException(Errno.EINTR, "its program was killed");
    }
  }

  public void fail(Errno errno) throws FsException {
    header(-errno.number(), 0);
    vector(0, outAddress, BODY);
    sendVectors(1);
  }

  /**
   * Invalidates a node's attributes in the kernel, but not its pages: dropping pages waits for
   * reads, including this one. Call before the answer.
   */
  public void forgetAttributes(long node) {
    header(KernelProtocol.NOTIFY_INVAL_INODE, INVAL_INODE_SIZE);
    out.putLong(KernelProtocol.OUT_UNIQUE, 0);
    out.putLong(BODY, node);
    out.putLong(BODY + 8, KEEP_PAGES);
    out.putLong(BODY + 16, 0);
    vector(0, outAddress, BODY + INVAL_INODE_SIZE);
    try {
      channel.send(vectorsAddress, 1);
    } catch (FsException e) {
      // The kernel no longer knows the file.
    }
  }

  /** Answers a read with the collected bytes, unless it was answered already. */
  public void sendCollected() throws FsException {
    if (!answered) {
      send(collected);
    }
  }

  @Override
  public void expect(int size) {
    expected = size;
    body(size);
  }

  @Override
  public ByteBuffer buffer(int size) {
    return out.slice(BODY + collected, size);
  }

  @Override
  public void accept(ReadResult piece) throws IOException {
    if (collected == 0 && piece.size() == expected && sendWhole(piece)) {
      return;
    }
    piece.copyTo(out.clear().position(BODY + collected));
    if (piece instanceof ReadResult.FileRange range && range.size() >= LEAST_PIPED_BYTES) {
      Pipe.dropPages(range);
    }
    collected += piece.size();
  }

  @Override
  public int received() {
    return collected;
  }

  /** Sends an answer of one piece without copying it, if that is worthwhile. */
  private boolean sendWhole(ReadResult piece) throws IOException {
    if (piece instanceof ReadResult.Mapping mapping) {
      return sendMapped(mapping);
    }
    if (piece instanceof ReadResult.Bytes bytes) {
      sendFrom(bytes.buffer());
      return true;
    }
    return piece instanceof ReadResult.FileRange range
        && range.size() >= LEAST_PIPED_BYTES
        && sendThroughPipe(range);
  }

  private boolean sendThroughPipe(ReadResult.FileRange range) throws IOException {
    header(0, range.size());
    if (!pipe.fill(outAddress, BODY, range)) {
      return false;
    }
    sendPipe(range.size());
    Pipe.dropPages(range);
    return true;
  }

  /**
   * Sends memory through a pipe, which references the pages before the kernel receives anything. If
   * writev cannot read the memory, the kernel ends the request with EIO (fuse_dev_do_write), and
   * the reader gets that error. An answer that is too small for a pipe is copied.
   */
  private boolean sendMapped(ReadResult.Mapping mapping) throws IOException {
    ByteBuffer memory = mapping.memory();
    int size = memory.remaining();
    if (size < LEAST_PIPED_BYTES) {
      return false;
    }
    header(0, size);
    if (!pipe.fill(outAddress, BODY, address(memory), size)) {
      return false;
    }
    sendPipe(size);
    return true;
  }

  private static long address(ByteBuffer memory) {
    return Pointer.wrap(Posix.RUNTIME, memory.slice()).address();
  }

  private void sendPipe(int size) throws IOException {
    if (!mayAnswer()) {
      pipe.close();
      collected = size;
      return;
    }
    boolean taken = false;
    try {
      taken = channel.sendPiped(pipe.output(), BODY + size);
      answered = true;
    } catch (FsException e) {
      throw new IOException("the kernel did not accept the answer: " + e.getMessage(), e);
    } finally {
      if (!taken) {
        pipe.close();
      }
      restore();
    }
    collected = size;
  }

  /** An answer that could not be sent is not one. */
  private void restore() {
    if (!answered) {
      state.setRelease(unique);
    }
  }

  /** Sends a whole answer from memory of another owner; the kernel copies it. */
  private void sendFrom(ByteBuffer memory) throws IOException {
    int size = memory.remaining();
    header(0, size);
    vector(0, outAddress, BODY);
    vector(1, address(memory), size);
    try {
      sendVectors(size == 0 ? 1 : 2);
    } catch (FsException e) {
      throw new IOException("the kernel did not accept the answer: " + e.getMessage(), e);
    }
    collected = size;
  }

  private void header(int error, int bodySize) {
    putHeader(out, unique, error, bodySize);
  }

  private static void putHeader(ByteBuffer answer, long unique, int error, int bodySize) {
    answer.putInt(KernelProtocol.OUT_LENGTH, BODY + bodySize);
    answer.putInt(KernelProtocol.OUT_ERROR, error);
    answer.putLong(KernelProtocol.OUT_UNIQUE, unique);
  }

  private void vector(int index, long address, long size) {
    vectors.putLong(index * VECTOR_SIZE, address);
    vectors.putLong(index * VECTOR_SIZE + 8, size);
  }

  /** Returns false if another thread has ended the request. */
  private boolean sendVectors(int count) throws FsException {
    if (answered) {
      throw new IllegalStateException("a request was answered twice");
    }
    if (!mayAnswer()) {
      return false;
    }
    try {
      channel.send(vectorsAddress, count);
      answered = true;
    } finally {
      restore();
    }
    return true;
  }

  /** Releases memory that other workers reuse; the reply must not be used afterwards. */
  @Override
  public void close() {
    pipe.close();
    buffers.give(out);
  }
}
