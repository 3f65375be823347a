package io.pmfs.it;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;

/** What happens to disks and files. */
final class Faults {
  /** FS_IOC_SHUTDOWN of linux/fs.h. */
  private static final long FS_IOC_SHUTDOWN = 0x8004587dL;

  private static final int WITHOUT_LOG_FLUSH = 2;

  private Faults() {}

  /** Changes one byte and leaves the times as they were, as a failing medium does. */
  static void flipByte(Path file, long offset) {
    try {
      FileTime time = Files.getLastModifiedTime(file);
      try (RandomAccessFile opened = new RandomAccessFile(file.toFile(), "rw")) {
        opened.seek(offset);
        int value = opened.read();
        opened.seek(offset);
        opened.write(value ^ 0x40);
      }
      Files.setLastModifiedTime(file, time);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static void truncate(Path file, long size) {
    try (RandomAccessFile opened = new RandomAccessFile(file.toFile(), "rw")) {
      opened.setLength(size);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static void delete(Path file) {
    Command.run("rm", "-rf", "--one-file-system", file.toString()).expect(0);
  }

  /** Makes every later call on a file system fail with EIO, as a disk that has gone away does. */
  static void shutDown(Path fileSystem) {
    long done =
        Posix.withFile(
            fileSystem.toString(),
            Posix.O_RDONLY,
            fd ->
                Posix.result(Posix.LIBC.ioctl(fd, FS_IOC_SHUTDOWN, new int[] {WITHOUT_LOG_FLUSH})));
    Posix.check(done);
  }
}
