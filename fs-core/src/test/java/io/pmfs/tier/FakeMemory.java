package io.pmfs.tier;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;

/**
 * Memory as a processor with a cache sees it: bytes written but not persisted may be lost, word by
 * word, when the power fails.
 */
final class FakeMemory implements MappedMemory {
  private static final int LINE_BYTES = 64;

  private final ByteBuffer written;
  private final ByteBuffer persisted;
  private boolean isOn = true; // GUARDED_BY(this)
  private int persistsUntilCut; // GUARDED_BY(this); 0: no cut is planned
  private Runnable whenCut = () -> {}; // GUARDED_BY(this)
  private volatile boolean closed;

  FakeMemory(int size) {
    this(ByteBuffer.allocateDirect(size));
  }

  private FakeMemory(ByteBuffer content) {
    persisted = content.order(ByteOrder.LITTLE_ENDIAN);
    written = ByteBuffer.allocateDirect(content.capacity()).order(ByteOrder.LITTLE_ENDIAN);
    written.put(0, content, 0, content.capacity());
  }

  /** The same memory, mapped again after a clean end or a killed process. */
  FakeMemory again() {
    return new FakeMemory(copy(written));
  }

  /**
   * The content after a power failure; any word may have been written back at any time before. This
   * object can still be used, without effect on the result.
   */
  synchronized FakeMemory afterPowerCut(Random random) {
    isOn = false;
    ByteBuffer left = copy(persisted);
    for (int at = 0; at < left.capacity(); at += Long.BYTES) {
      long now = written.getLong(at);
      if (now != left.getLong(at) && random.nextBoolean()) {
        left.putLong(at, now);
      }
    }
    return new FakeMemory(left);
  }

  /** Makes the power fail at a later call of {@link #persist}, before it does anything. */
  synchronized void cutAtPersist(int count, Runnable then) {
    persistsUntilCut = count;
    whenCut = then;
  }

  private static ByteBuffer copy(ByteBuffer source) {
    ByteBuffer copy = ByteBuffer.allocateDirect(source.capacity()).order(ByteOrder.LITTLE_ENDIAN);
    copy.put(0, source, 0, source.capacity());
    return copy;
  }

  boolean isClosed() {
    return closed;
  }

  @Override
  public long size() {
    return written.capacity();
  }

  @Override
  public DaxVerdict dax() {
    return new DaxVerdict(false, "emulated: a test's");
  }

  @Override
  public ByteBuffer slice(long offset, int size) {
    if (closed) {
      throw new AssertionError("the memory is unmapped");
    }
    return written.slice(Math.toIntExact(offset), size).order(ByteOrder.LITTLE_ENDIAN);
  }

  @Override
  public synchronized void persist(long offset, long size) {
    if (persistsUntilCut > 0 && --persistsUntilCut == 0) {
      whenCut.run();
    }
    if (isOn && size > 0) {
      int start = (int) (offset / LINE_BYTES * LINE_BYTES);
      int end = (int) ((offset + size + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
      persisted.put(start, written, start, Math.min(end, written.capacity()) - start);
    }
  }

  @Override
  public void sync(long offset, long size) {
    persist(offset, size);
  }

  @Override
  public void close() {
    if (closed) {
      throw new AssertionError("closed twice");
    }
    closed = true;
  }
}
