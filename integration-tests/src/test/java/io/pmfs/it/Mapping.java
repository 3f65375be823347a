package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import jnr.ffi.Pointer;

/** A file that is open and mapped; unlike one of Java's, the mapping ends when it is closed. */
final class Mapping implements AutoCloseable {
  private final int file;
  private final int size;
  private Pointer memory;

  Mapping(String path, int size) {
    this.file = (int) Posix.check(Posix.open(path, Posix.O_RDONLY));
    this.size = size;
    this.memory = map();
    if (memory.address() == -1) {
      Posix.close(file);
      throw new AssertionError("cannot map " + path);
    }
  }

  private Pointer map() {
    return Posix.LIBC.mmap(null, size, Posix.PROT_READ, Posix.MAP_SHARED, file, 0);
  }

  /** Maps the open file anew: pages that were seen are looked for again. */
  void remap() {
    Posix.check(Posix.result(Posix.LIBC.munmap(memory.address(), size)));
    memory = map();
    if (memory.address() == -1) {
      throw new AssertionError("cannot map again");
    }
  }

  long address() {
    return memory.address();
  }

  /** Reads a byte, so that its page is there. */
  void touch(long offset) {
    memory.getByte(offset);
  }

  void assertEquals(Dataset.Item item) {
    byte[] content = item.content();
    assertThat(readEquals(content)).as("open %s", item).isTrue();
    assertThat(mappedEquals(content)).as("mapped %s", item).isTrue();
  }

  boolean mappedEquals(byte[] content) {
    byte[] bytes = new byte[size];
    memory.get(0, bytes, 0, size);
    return Arrays.equals(bytes, content);
  }

  boolean readEquals(byte[] content) {
    byte[] bytes = new byte[size];
    int at = 0;
    while (at < size) {
      byte[] piece = new byte[size - at];
      int count = (int) Posix.check(Posix.pread(file, piece, piece.length, at));
      if (count == 0) {
        return false;
      }
      System.arraycopy(piece, 0, bytes, at, count);
      at += count;
    }
    return Arrays.equals(bytes, content);
  }

  @Override
  public void close() {
    Posix.check(Posix.result(Posix.LIBC.munmap(memory.address(), size)));
    Posix.close(file);
  }
}
