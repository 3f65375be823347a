package io.pmfs.table;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A file that reserves room for use when the disk is full. Used by one thread at a time. */
final class Reserve {
  /** Enough to reopen a store with full write buffers, and for many removals. */
  static final int BYTES = 16 << 20;

  private static final int PIECE_BYTES = 1 << 20;

  private final Path file;

  /** The reserve in an existing directory. */
  Reserve(Path directory) {
    this.file = directory.resolve("reserve");
  }

  /** Reserves the room, if at least as much stays free; returns whether it is reserved. */
  boolean take() {
    try {
      if (Files.exists(file) && Files.size(file) == BYTES) {
        return true;
      }
      if (Files.getFileStore(file.getParent()).getUsableSpace() < 2L * BYTES) {
        return false;
      }
      fill();
      return true;
    } catch (IOException e) {
      give(); // A part of the reserve is useless.
      return false;
    }
  }

  private void fill() throws IOException {
    ByteBuffer zeros = ByteBuffer.allocate(PIECE_BYTES);
    try (FileChannel out =
        FileChannel.open(
            file,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      for (int done = 0; done < BYTES; done += PIECE_BYTES) {
        zeros.clear();
        while (zeros.hasRemaining()) {
          out.write(zeros);
        }
      }
    }
  }

  /** Frees the room; returns whether it was reserved. */
  boolean give() {
    try {
      return Files.deleteIfExists(file);
    } catch (IOException e) {
      return false;
    }
  }
}
