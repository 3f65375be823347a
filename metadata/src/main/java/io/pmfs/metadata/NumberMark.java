package io.pmfs.metadata;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A file, elsewhere than the state, that says below which number the session's inode numbers lie:
 * the kernel holds them beyond the process, and the state may not know them. Best where a failing
 * disk of the state does not matter, in memory.
 */
final class NumberMark {
  private final @Nullable Path file;
  private final Consumer<String> log;

  /**
   * A mark that need not be there.
   *
   * @param file null if no process goes on with this one's session
   * @param log takes a line when the mark cannot be kept
   */
  NumberMark(@Nullable Path file, Consumer<String> log) {
    this.file = file;
    this.log = log;
  }

  /** The first number that was not given out in this session; 0 if that is not known. */
  long read() {
    try {
      if (file != null && Files.size(file) == Long.BYTES) {
        return Math.max(0, ByteBuffer.wrap(Files.readAllBytes(file)).getLong());
      }
    } catch (IOException e) {
      // There is none yet.
    }
    return 0;
  }

  /** From now on numbers below the end may be given out. */
  void raise(long end) {
    if (file == null) {
      return;
    }
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
      channel.write(ByteBuffer.allocate(Long.BYTES).putLong(0, end), 0);
    } catch (IOException e) {
      log.accept("%s cannot be written: %s".formatted(file, e));
    }
  }
}
