package io.pmfs.tier;

import io.pmfs.memory.ReadResult;
import io.pmfs.tier.PoolTable.Allocation;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;

/** A mapped memory that is unmapped when its last user has left. Thread-safe. */
final class MemoryUse {
  private final MappedMemory memory;
  private final AtomicInteger users = new AtomicInteger(1);

  /** Takes over mapped memory for one user, the caller, which must {@link #leave} it. */
  MemoryUse(MappedMemory memory) {
    this.memory = memory;
  }

  /**
   * Adds a user, for which the memory stays mapped until {@link #leave}.
   *
   * @throws IOException if it is already unmapped
   */
  void enter() throws IOException {
    int count;
    do {
      count = users.get();
      if (count == 0) {
        throw new IOException("the pool is closed");
      }
    } while (!users.compareAndSet(count, count + 1));
  }

  void leave() {
    if (users.decrementAndGet() == 0) {
      memory.close();
    }
  }

  /** Writes all remaining bytes into an allocation, and persists them. */
  void write(Allocation allocation, long offset, ByteBuffer source) throws IOException {
    int size = source.remaining();
    if (offset < 0 || offset > allocation.length() - size) {
      throw new IOException("the copy is larger than the room reserved for it");
    }
    long at = allocation.offset() + offset;
    memory.check(at, size, true);
    try {
      memory.slice(at, size).put(source);
    } catch (InternalError e) {
      throw new IOException("the memory cannot be written", e);
    }
    memory.persist(at, size);
  }

  /** Reads a range of an allocation. */
  ReadResult read(Allocation allocation, long offset, int size) {
    if (offset < 0 || size < 0 || offset > allocation.length() - size) {
      throw new IndexOutOfBoundsException("%d bytes at %d".formatted(size, offset));
    }
    long at = allocation.offset() + offset;
    return new ReadResult.Mapping(
        memory.slice(at, size), destination -> copy(at, size, destination));
  }

  private void copy(long offset, int size, ByteBuffer destination) throws IOException {
    memory.check(offset, size, false);
    try {
      destination.put(memory.slice(offset, size));
    } catch (InternalError e) {
      // The JVM reports SIGBUS as an InternalError; it occurred after the check.
      throw new IOException("the memory cannot be read", e);
    }
  }
}
