package io.pmfs.writable.mount;

import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import java.time.Instant;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/** Changes of a program that moves directories over each other, and over files. */
final class MovingChanges {
  /** Kinds of changes that make, move and remove names, and write. */
  private static final int OF_NAMES = 20;

  /** Those and owners, times, extended attributes and pipes. */
  private static final int ALL = 25;

  private static final String[] DIRECTORIES = {"a", "b", "c"};
  private static final String[] FILES = {"e", "f", "g"};

  private final Random random;
  private final StringBuilder log;
  private final int kinds;
  private int serial;

  private MovingChanges(Random random, StringBuilder log, int kinds) {
    this.random = random;
    this.log = log;
    this.kinds = kinds;
  }

  static MovingChanges ofNames(Random random, StringBuilder log) {
    return new MovingChanges(random, log, OF_NAMES);
  }

  static MovingChanges ofAllKinds(Random random, StringBuilder log) {
    return new MovingChanges(random, log, ALL);
  }

  private String pick(String[] from) {
    return from[random.nextInt(from.length)];
  }

  private String name() {
    StringBuilder path = new StringBuilder();
    for (int i = random.nextInt(3); i > 0; i--) {
      path.append(pick(DIRECTORIES)).append('/');
    }
    return path + pick(FILES);
  }

  private String directory() {
    return random.nextInt(2) == 0 ? pick(DIRECTORIES) : pick(DIRECTORIES) + "/" + pick(DIRECTORIES);
  }

  private String any() {
    return random.nextInt(2) == 0 ? name() : directory();
  }

  /** Makes a change, or none if it is not possible now. */
  void make(Driver driver) throws FsException {
    int kind = random.nextInt(kinds);
    String one = kind < 10 ? name() : random.nextInt(3) == 0 ? name() : directory();
    String other = kind < 10 ? name() : any();
    String text = "<" + serial++ + ">";
    boolean isExchange = random.nextInt(2) == 0;
    log.append("%d %s %s %b %s%n".formatted(kind, one, other, isExchange, text));
    try {
      switch (kind) {
        case 0, 1, 2 -> put(driver, one, text);
        case 3 -> {
          if (type(driver, one) == FileType.REGULAR) {
            driver.append(one, text);
          }
        }
        case 4 -> {
          if (type(driver, one) == FileType.REGULAR) {
            driver.overwrite(one, 1, "#");
          }
        }
        case 5 -> {
          put(driver, one, text);
          driver.rename(one, other, 0);
        }
        case 6 -> driver.link(one, other);
        case 7 -> driver.unlink(one);
        case 8 -> driver.rename(one, other, isExchange ? OutputCalls.RENAME_EXCHANGE : 0);
        case 9 -> driver.symlink("target" + serial, one);
        case 10, 11, 12 -> driver.mkdir(directory());
        case 13 -> driver.rmdir(one);
        case 14, 15 -> driver.rename(one, directory(), 0);
        case 16, 17 -> driver.rename(one, other, OutputCalls.RENAME_EXCHANGE);
        case 18 -> {
          if (type(driver, other) != null && type(driver, other) != FileType.SYMBOLIC_LINK) {
            driver.chmod(other, isExchange ? 0700 : 0711);
          }
        }
        case 20 -> driver.mknod(one, 0010644);
        case 21 -> driver.chown(other, random.nextInt(3), random.nextInt(3));
        case 22 -> driver.setTimes(other, Instant.ofEpochSecond(1_000_000_000L + serial));
        case 23 -> {
          if (type(driver, other) == FileType.REGULAR) {
            driver.setExtended(other, "user." + (isExchange ? "a" : "b"), text);
          }
        }
        case 24 -> driver.removeExtended(other, "user." + (isExchange ? "a" : "b"));
        default -> {
          if (driver.find(one) == null) {
            WritableFileSystem.Opened file = driver.create(one);
            driver.write(file, 0, text);
            driver.unlink(one);
            driver.close(file);
          }
        }
      }
    } catch (FsException e) {
      switch (e.errno()) {
        case ENOENT, EEXIST, ENOTDIR, EISDIR, ENOTEMPTY, EINVAL, EPERM, ENODATA ->
            log.append("    ").append(e.errno()).append('\n');
        default -> throw e;
      }
    }
  }

  private static @Nullable FileType type(Driver driver, String path) throws FsException {
    WritableFileSystem.Node node = driver.find(path);
    return node == null ? null : node.attributes().type();
  }

  private static void put(Driver driver, String path, String text) throws FsException {
    if (type(driver, path) == null || type(driver, path) == FileType.REGULAR) {
      driver.put(path, text);
    }
  }
}
