package io.pmfs.table;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * A file that keeps some room on a disk for the time when the disk is full. Used by one thread at a
 * time.
 */
final class Reserve {
  /** Enough to open a store again whose write buffers are full, and for many removals. */
  static final int BYTES = 16 << 20;

  private static final int PIECE_BYTES = 1 << 20;

  private final Path file;

  /** The reserve of a directory, which exists. */
  Reserve(Path directory) {
    this.file = directory.resolve("reserve");
  }

  /** Takes the room, unless that would leave less than as much; returns whether it is there. */
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
      give(); // What there is of it is of no use.
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

  /** Gives the room back; returns whether it was there. */
  boolean give() {
    try {
      return Files.deleteIfExists(file);
    } catch (IOException e) {
      return false;
    }
  }
}
