package io.pmfs.it;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Until close, all users may open /dev/fuse, as on most machines. Several processes of tests may
 * have one of these at a time: the last one that closes gives back the mode that the first one
 * found, also if one of them was killed.
 */
final class DeviceForAll implements AutoCloseable {
  private static final int FOR_ALL = 0666;

  private final Path device;
  private final Path holders;
  private final Path own;

  DeviceForAll() {
    this(Path.of("/dev/fuse"), Path.of("/run/pmfs-it-fuse"));
  }

  /**
   * @param holders a directory, with the mode to give back and a file for each that is open
   */
  DeviceForAll(Path device, Path holders) {
    this.device = device;
    this.holders = holders;
    own = holders.resolve(TestRun.newName());
    inTurn(
        () -> {
          if (isUnheld() && (mode() != FOR_ALL || !Files.exists(found()))) {
            Files.writeString(found(), Integer.toOctalString(mode()));
          }
          Files.createFile(own);
          chmod(FOR_ALL);
        });
  }

  private interface Step {
    void run() throws IOException;
  }

  private void inTurn(Step step) {
    try {
      Files.createDirectories(holders);
      try (FileChannel lock = FileChannel.open(holders.resolve("lock"), CREATE, WRITE)) {
        lock.lock();
        step.run();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Removes what killed processes left. */
  private boolean isUnheld() throws IOException {
    boolean unheld = true;
    for (Path holder : list()) {
      if (TestRun.isStale(holder.getFileName().toString())) {
        Files.delete(holder);
      } else {
        unheld = false;
      }
    }
    return unheld;
  }

  private List<Path> list() throws IOException {
    try (var files = Files.list(holders)) {
      return files.filter(Scratch::isOne).toList();
    }
  }

  private Path found() {
    return holders.resolve("mode");
  }

  private int mode() {
    return Posix.stat(device.toString()).permissions();
  }

  private void chmod(int mode) {
    Posix.check(Posix.result(Posix.LIBC.chmod(Posix.c(device.toString()), mode)));
  }

  @Override
  public void close() {
    inTurn(
        () -> {
          Files.deleteIfExists(own);
          if (isUnheld() && Files.exists(found())) {
            chmod(Integer.parseInt(Files.readString(found()), 8));
            Files.delete(found());
          }
        });
  }
}
