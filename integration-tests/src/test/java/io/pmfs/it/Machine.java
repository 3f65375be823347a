package io.pmfs.it;

import static org.assertj.core.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;

/**
 * What this machine can do. A test that needs more is reported skipped, with the reason;
 * PMFS_REQUIRE_FUSE=1 in the environment makes a missing FUSE a failure.
 */
final class Machine {
  private static final Path FUSE = Path.of("/dev/fuse");

  private Machine() {}

  /** Whether it is the guest of {@code scripts/dax-vm}, where Java is 14 to 20 times slower. */
  static boolean isEmulated() {
    return System.getenv("PMEM_KIND") != null;
  }

  static boolean isRoot() {
    return uid() == 0;
  }

  static int uid() {
    try {
      return (Integer) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static void requireRoot() {
    assumeTrue(isRoot(), "needs root");
  }

  static void requireFuse() {
    String missing = FuseHere.MISSING;
    if (missing.isEmpty()) {
      return;
    }
    if ("1".equals(System.getenv("PMFS_REQUIRE_FUSE"))) {
      fail("PMFS_REQUIRE_FUSE=1, but " + missing);
    }
    assumeTrue(false, missing);
  }

  /** What is found out once, as nearly every test asks for it. */
  private static final class FuseHere {
    static final String MISSING = missingForFuse();
  }

  private static String missingForFuse() {
    if (!Files.exists(FUSE)) {
      return "no /dev/fuse";
    }
    long opened = Posix.withFile(FUSE.toString(), Posix.O_RDWR, fd -> 0);
    if (opened < 0) {
      return "/dev/fuse cannot be opened: " + Posix.outcome(opened);
    }
    String libraries = Command.run("sh", "-c", "PATH=$PATH:/sbin:/usr/sbin ldconfig -p").out();
    if (!libraries.contains("libfuse.so.2")) {
      return "no libfuse.so.2";
    }
    return isRoot() || onPath("fusermount3") || onPath("fusermount") ? "" : "no fusermount3";
  }

  /** Linux 6.9 is the first that reads a file in place of a FUSE daemon. */
  static void requirePassthrough() {
    requireKernel(6_009, "no passthrough");
  }

  private static void requireKernel(int least, String lack) {
    String release = System.getProperty("os.version");
    String[] parts = release.split("[^0-9]+", 3);
    int version = 1000 * Integer.parseInt(parts[0]) + Integer.parseInt(parts[1]);
    assumeTrue(version >= least, lack + " in kernel " + release);
  }

  static boolean onPath(String command) {
    return Command.run("sh", "-c", "PATH=$PATH:/sbin:/usr/sbin; command -v " + command).exit() == 0;
  }

  static void requireCommand(String command) {
    assumeTrue(onPath(command), "needs " + command);
  }

  static void requireLoopDevice() {
    String path = "PATH=$PATH:/sbin:/usr/sbin ";
    assumeTrue(
        Command.run("sh", "-c", path + "losetup -f").exit() == 0, "needs a free loop device");
  }

  /**
   * The kernel's switches of FUSE connections; mounted, and left so, where nothing has done that.
   */
  static void requireFusectl() {
    Path connections = Path.of("/sys/fs/fuse/connections");
    if (!Mounts.at(connections)) {
      Command.run("mount", "-t", "fusectl", "fusectl", connections.toString());
    }
    assumeTrue(Mounts.at(connections), "needs fusectl, mounted on " + connections);
  }

  /**
   * Makes the kernel forget names and attributes. Files whose data is cached it keeps; and all
   * other programs keep theirs, so this may be done often.
   */
  static void dropNames() {
    try {
      Files.writeString(Path.of("/proc/sys/vm/drop_caches"), "2");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Makes the kernel forget names and attributes, and the data of all files below a directory that
   * can be opened. What only one mount is to be asked for again is forgotten so.
   */
  static void forget(Path directory) {
    if (forgetData(directory.toString()) == 0) {
      fail("no file of " + directory + " could be opened");
    }
    dropNames();
  }

  /** How many files it was; find(1) would ask for the state of the file system as well. */
  private static int forgetData(String directory) {
    int files = 0;
    for (Posix.Entry entry : Posix.list(directory)) {
      String path = directory + "/" + entry.name();
      if (isOfType(Posix.DT_REG, entry, path)) {
        files += Posix.forgetData(path) == 0 ? 1 : 0;
      } else if (!List.of(".", "..").contains(entry.name())
          && isOfType(Posix.DT_DIR, entry, path)) {
        files += forgetData(path);
      }
    }
    return files;
  }

  /** The listing of a writable mount tells what that of its source tells, perhaps no type. */
  private static boolean isOfType(int type, Posix.Entry entry, String path) {
    return entry.type() == Posix.DT_UNKNOWN
        ? Files.isDirectory(Path.of(path), LinkOption.NOFOLLOW_LINKS) == (type == Posix.DT_DIR)
        : entry.type() == type;
  }

  /**
   * Makes the kernel forget names, attributes and file data that it can read again: of everybody,
   * so that each JVM that starts then reads its libraries from the disk. For what has to be read
   * from a tier's or the state's disk again.
   */
  static void dropCaches() {
    try {
      Command.run("sync").expect(0);
      Files.writeString(Path.of("/proc/sys/vm/drop_caches"), "3");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
