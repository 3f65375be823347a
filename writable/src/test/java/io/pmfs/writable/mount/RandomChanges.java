package io.pmfs.writable.mount;

import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** Changes of all kinds in a few directories, as many programs may make them. */
final class RandomChanges {
  static final String[] FILES = {"a", "b", "c"};
  private static final String[] DIRECTORIES = {"", "d/", "e/", "d/s/"};

  final Map<String, Opened> open = new HashMap<>();
  final StringBuilder log = new StringBuilder();
  private int serial;

  private static String pick(Random random, String[] from) {
    return from[random.nextInt(from.length)];
  }

  /** Makes a change, or none if it is not possible now. */
  void make(Driver driver, Random random) throws FsException {
    String path = pick(random, DIRECTORIES) + pick(random, FILES);
    String other = pick(random, DIRECTORIES) + pick(random, FILES);
    int kind = random.nextInt(20);
    log.append(kind).append(' ').append(path).append(' ').append(other).append('\n');
    try {
      change(driver, random, kind, path, other);
    } catch (FsException e) {
      switch (e.errno()) {
        case ENOENT, EEXIST, ENOTDIR, EISDIR, ENOTEMPTY, EINVAL ->
            log.append("  " + e.errno() + "\n");
        default -> throw e;
      }
    }
  }

  private void change(Driver driver, Random random, int kind, String path, String other)
      throws FsException {
    String text = "<" + serial++ + ">";
    boolean isBusy = open.containsKey(path) || open.containsKey(other);
    switch (kind) {
      case 0, 1, 2 -> {
        if (!isBusy) {
          driver.put(path, text);
        }
      }
      case 3, 4 -> {
        if (!isBusy && links(driver, path) > 0) {
          driver.append(path, text);
        }
      }
      case 5 -> {
        if (!isBusy && links(driver, path) > 0) {
          driver.overwrite(path, 1, "#");
        }
      }
      case 6 -> {
        if (!isBusy && links(driver, path) > 0) {
          driver.truncate(path, 2);
        }
      }
      case 7, 8, 9 -> {
        if (!isBusy) {
          driver.rename(path, other, 0);
        }
      }
      case 10 -> {
        if (!isBusy) {
          driver.rename(path, other, OutputCalls.RENAME_EXCHANGE);
        }
      }
      case 11, 12 -> driver.unlink(removable(path));
      case 13 -> {
        if (!isBusy) {
          driver.link(path, other);
        }
      }
      case 14 -> driver.symlink("target" + serial, path);
      case 15 -> driver.mkdir(DIRECTORIES[1 + random.nextInt(3)].replaceFirst("/$", ""));
      case 16 -> {
        if (open.isEmpty()) {
          driver.rmdir(DIRECTORIES[1 + random.nextInt(3)].replaceFirst("/$", ""));
        }
      }
      case 17 -> {
        if (!isBusy && links(driver, path) > 0 && !isLink(driver, path)) {
          driver.chmod(path, random.nextBoolean() ? 0600 : 0640);
        }
      }
      case 18 -> openOrClose(driver, path, text);
      default -> {
        if (open.isEmpty()) {
          driver.rename("d", random.nextBoolean() ? "e" : "e/t", 0);
        }
      }
    }
  }

  /** Removing a file that is open is another test's. */
  private String removable(String path) throws FsException {
    if (open.containsKey(path)) {
      throw new FsException(Errno.ENOENT, path);
    }
    return path;
  }

  private static boolean isLink(Driver driver, String path) throws FsException {
    return driver.node(path).attributes().type() == FileType.SYMBOLIC_LINK;
  }

  private static int links(Driver driver, String path) throws FsException {
    WritableFileSystem.Node node = driver.find(path);
    return node == null ? 0 : node.attributes().linkCount();
  }

  private void openOrClose(Driver driver, String path, String text) throws FsException {
    Opened file = open.remove(path);
    if (file != null) {
      driver.close(file);
    } else if (driver.find(path) == null) {
      Opened created = driver.create(path);
      open.put(path, created);
      driver.write(created, 0, text);
    }
  }
}
