package io.pmfs.metadata;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A file outside the state with a bound above all inode numbers of the session: the kernel
 * remembers the numbers longer than a process lives, and the state may be lost. Best placed in a
 * memory file system, which a failing disk does not affect.
 */
final class NumberMark {
  private final @Nullable Path file;
  private final Consumer<String> log;

  /**
   * A mark whose file need not exist.
   *
   * @param file null if no other process continues this session
   * @param log receives a line when the mark cannot be written or read
   */
  NumberMark(@Nullable Path file, Consumer<String> log) {
    this.file = file;
    this.log = log;
  }

  /** The first number that was not assigned in this session; 0 if unknown. */
  long load() {
    try {
      if (file != null && Files.size(file) == Long.BYTES) {
        return Math.max(0, ByteBuffer.wrap(Files.readAllBytes(file)).getLong());
      }
    } catch (NoSuchFileException e) {
      // There is no mark yet.
    } catch (IOException e) {
      log.accept("cannot read %s: %s".formatted(file, e));
    }
    return 0;
  }

  /** Call before numbers below {@code end} are assigned. */
  void raise(long end) {
    if (file == null) {
      return;
    }
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
      channel.write(ByteBuffer.allocate(Long.BYTES).putLong(0, end), 0);
    } catch (IOException e) {
      log.accept("cannot write %s: %s".formatted(file, e));
    }
  }
}
