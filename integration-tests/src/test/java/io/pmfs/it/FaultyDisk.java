package io.pmfs.it;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * A small ext4 file system that a test fills, turns read-only, or whose device it makes fail. It
 * takes root and a loop device.
 *
 * <p>What cannot be undone under a file system that is in use, as on a real machine: ext4 aborts
 * its journal when a write to the device fails, and is read-only until it was unmounted and
 * checked. {@link #repair} does what an administrator does then.
 */
final class FaultyDisk implements AutoCloseable {
  private static final String FILLING = ".filling";
  private static final Duration FILLED = Duration.ofSeconds(30);

  private final Path directory;
  private Path image;
  private LoopDevice device;
  private boolean failing;
  private volatile @Nullable Thread filler;

  private FaultyDisk(Path directory, Path image) {
    this.directory = directory;
    this.image = image;
    this.device = mount(image);
  }

  /**
   * Makes a file system and mounts it; skips the test where that cannot be.
   *
   * @param name of the directory in the scratch directory
   * @param size as truncate and mkfs read it, such as 64M
   */
  static FaultyDisk create(Scratch scratch, String name, String size) {
    Machine.requireRoot();
    Machine.requireCommand("mkfs.ext4");
    Machine.requireLoopDevice();
    Path image = scratch.root().resolve(name + ".img");
    Command.run("truncate", "-s", size, image.toString()).expect(0);
    Command.run("mkfs.ext4", "-q", "-F", "-m", "0", image.toString()).expect(0);
    return new FaultyDisk(scratch.directory(name), image);
  }

  private LoopDevice mount(Path image) {
    LoopDevice mounted = LoopDevice.of(image);
    Command made = Command.run("mount", mounted.path().toString(), directory.toString());
    // The kernel frees the device when the last mount of it ends, also that of a killed test.
    mounted.close();
    made.expect(0);
    return mounted;
  }

  /** Where it is mounted. */
  Path directory() {
    return directory;
  }

  /**
   * Takes all room that is left: every later write that needs some answers ENOSPC. Takes no more
   * than the disk has, should it not be mounted any more.
   */
  void fill() {
    fill("64K", sizeBytes() >> 16);
    fill("1K", 4096);
  }

  private void fill(String block, long count) {
    // Ends with 1, as it should, when there is no room.
    Command.run(
        "dd",
        "if=/dev/zero",
        "of=" + directory.resolve(FILLING),
        "bs=" + block,
        "count=" + count,
        "oflag=append",
        "conv=notrunc,fsync");
  }

  private long sizeBytes() {
    try {
      return Files.size(image);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** As {@link #fill}, and what others give back is taken as well, until {@link #free}. */
  void keepFull() {
    fill();
    Thread filling = new Thread(this::fillOnAndOn, "filler");
    filler = filling;
    filling.start();
  }

  private void fillOnAndOn() {
    while (filler != null && Mounts.at(directory)) {
      fill();
    }
  }

  /** Before the disk is unmounted. */
  void stopFilling() {
    Thread filling = filler;
    filler = null;
    if (filling != null) {
      Await.until("the disk is filled no more", FILLED, () -> !filling.isAlive());
    }
  }

  /** Gives the room back that {@link #fill} and {@link #keepFull} took. */
  void free() {
    stopFilling();
    Faults.delete(directory.resolve(FILLING));
    Command.run("sync", "-f", directory.toString()).expect(0);
  }

  /**
   * What ext4 does of itself after an error, whatever is open for writing: only {@link #repair}
   * undoes it.
   */
  void turnReadOnly() {
    Command.run("mount", "-o", "remount,abort", directory.toString()).expect(0);
  }

  /**
   * Every later call on the file system answers EIO, also what is in the page cache: only {@link
   * #repair} undoes it.
   */
  void shutDown() {
    Faults.shutDown(directory);
  }

  /**
   * Reads and writes that reach the device answer EIO, until {@link #recoverDevice}; the page cache
   * still answers.
   */
  void failDevice() {
    device.fail();
    failing = true;
  }

  /**
   * The device answers again. The file system is writable if nothing had to be written meanwhile.
   */
  void recoverDevice() {
    if (failing) {
      device.recover();
    }
    failing = false;
  }

  /**
   * Unmounts, checks and mounts again what is on the device. A process that still has files open
   * has them in the old file system, which stays as it is.
   */
  void repair() {
    recoverDevice();
    Command.run("sync", "-f", directory.toString());
    Command.run("umount", "-l", directory.toString()).expect(0);
    Path copy = image.resolveSibling(image.getFileName() + "-repaired");
    Command.run("cp", "--sparse=always", image.toString(), copy.toString()).expect(0);
    // 1: errors were corrected.
    Command checked = Command.run("e2fsck", "-fy", copy.toString());
    if (checked.exit() > 1) {
      throw new AssertionError("not repaired: " + checked);
    }
    image = copy;
    device = mount(copy);
  }

  /** Mounts an empty file system in place of what was there, as a new disk is. */
  void replace() {
    recoverDevice();
    Command.run("umount", "-l", directory.toString()).expect(0);
    Path fresh = image.resolveSibling(image.getFileName() + "-new");
    try {
      Command.run("truncate", "-s", Long.toString(Files.size(image)), fresh.toString()).expect(0);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    Command.run("mkfs.ext4", "-q", "-F", "-m", "0", fresh.toString()).expect(0);
    image = fresh;
    device = mount(fresh);
  }

  @Override
  public void close() {
    stopFilling();
    recoverDevice();
    Command.run("umount", "-l", directory.toString());
  }
}
