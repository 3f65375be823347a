package io.pmfs.fuse.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

/** Counts the faults of touching mapped memory: one for each piece that the kernel maps. */
final class PageFaults {
  private static final int PAGE = 4096;

  private PageFaults() {}

  /** Reads a byte of each page. */
  static long ofReading(ByteBuffer memory) throws IOException {
    // Maps the pages that the test itself needs.
    read(memory.duplicate().limit(PAGE));
    long before = soFar();
    read(memory);
    return soFar() - before;
  }

  private static void read(ByteBuffer memory) {
    int sum = 0;
    for (int i = 0; i < memory.limit(); i += PAGE) {
      sum += memory.get(i);
    }
    assertThat(sum).isNotEqualTo(Integer.MIN_VALUE);
  }

  /** Writes a byte of each page. */
  static long ofWriting(ByteBuffer memory) throws IOException {
    write(memory.duplicate().limit(PAGE));
    long before = soFar();
    write(memory);
    return soFar() - before;
  }

  private static void write(ByteBuffer memory) {
    for (int i = 0; i < memory.limit(); i += PAGE) {
      memory.put(i, (byte) 1);
    }
  }

  /** This thread's tenth field of proc_pid_stat(5). */
  private static long soFar() throws IOException {
    String stat = Files.readString(Path.of("/proc/thread-self/stat"));
    return Long.parseLong(stat.substring(stat.lastIndexOf(')') + 2).split(" ", -1)[7]);
  }
}
