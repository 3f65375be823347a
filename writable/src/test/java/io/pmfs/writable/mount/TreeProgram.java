package io.pmfs.writable.mount;

import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * A program that changes a tree in which others do so, too. It often uses a name again that it used
 * a moment ago, and keeps a file open for a while.
 */
final class TreeProgram {
  private static final int KEPT = 6;
  private static final int KINDS = 26;
  private static final String[] DIRECTORIES = {"a", "b", "c"};
  private static final String[] FILES = {"e", "f", "g"};

  private final String name;
  private final int user;
  private final Random random;
  private final StringBuffer log;
  private final Deque<String> used = new ArrayDeque<>();
  private @Nullable Opened open;
  private int serial;

  TreeProgram(String name, int user, Random random, StringBuffer log) {
    this.name = name;
    this.user = user;
    this.random = random;
    this.log = log;
  }

  private String pick(String[] from) {
    return from[random.nextInt(from.length)];
  }

  private String below(String last) {
    StringBuilder path = new StringBuilder();
    for (int i = random.nextInt(3); i > 0; i--) {
      path.append(pick(DIRECTORIES)).append('/');
    }
    return path + last;
  }

  private String file() {
    return below(pick(FILES));
  }

  private String directory() {
    return below(pick(DIRECTORIES));
  }

  private String any() {
    if (!used.isEmpty() && random.nextInt(2) == 0) {
      return List.copyOf(used).get(random.nextInt(used.size()));
    }
    return random.nextInt(2) == 0 ? file() : directory();
  }

  private void use(String path) {
    log.append("    ").append(path).append('\n');
    used.add(path);
    if (used.size() > KEPT) {
      used.remove();
    }
  }

  /** Closes what it has open. */
  void close(Driver driver) throws FsException {
    Opened file = open;
    open = null;
    if (file != null) {
      told(() -> driver.close(file));
    }
  }

  /** The mount has ended. */
  void forget() {
    open = null;
  }

  private interface Call {
    void make() throws FsException;
  }

  /** A close may report what the source answered before; it has worked. */
  private void told(Call call) throws FsException {
    try {
      call.make();
    } catch (FsException e) {
      if (!String.valueOf(e.getMessage()).contains("the source: ")) {
        throw e;
      }
      log.append("    told: ").append(e.getMessage()).append('\n');
    }
  }

  /** Makes a change, or none if it is not possible now. */
  void make(Driver driver) throws FsException {
    driver.user.set(user);
    Opened file = open;
    if (file != null && random.nextInt(3) == 0) {
      boolean isClosing = random.nextInt(2) == 0;
      log.append(name + (isClosing ? " close\n" : " write\n"));
      if (isClosing) {
        close(driver);
      } else {
        driver.write(file, random.nextInt(8), text());
      }
      return;
    }
    int kind = random.nextInt(KINDS);
    String one = any();
    String other = any();
    log.append("%s %d %s %s%n".formatted(name, kind, one, other));
    try {
      told(() -> change(driver, kind, one, other));
    } catch (FsException e) {
      if (!isExpected(e.errno()) && !isOfAMove(e)) {
        throw e;
      }
      log.append("    ").append(e.errno()).append('\n');
    }
  }

  private static boolean isExpected(Errno errno) {
    return switch (errno) {
      case ENOENT, EEXIST, ENOTDIR, EISDIR, ENOTEMPTY, EINVAL, EPERM, ENODATA, ESTALE, EOPNOTSUPP ->
          true;
      default -> false;
    };
  }

  /** A rename at the source was made without an answer, and is not recorded yet. */
  private static boolean isOfAMove(FsException e) {
    return String.valueOf(e.getMessage()).contains("did not say whether it was moved");
  }

  private String text() {
    return "<" + name + serial++ + ">";
  }

  private void change(Driver driver, int kind, String one, String other) throws FsException {
    switch (kind) {
      case 0, 1 -> {
        String path = file();
        use(path);
        if (open == null && driver.find(path) == null) {
          open = driver.create(path);
          driver.write(open, 0, text());
        }
      }
      case 2, 3 -> put(driver, random.nextBoolean() ? file() : one);
      case 4 -> {
        if (type(driver, one) == FileType.REGULAR) {
          driver.append(one, text());
        }
      }
      case 5 -> {
        if (type(driver, one) == FileType.REGULAR) {
          driver.overwrite(one, 1, "#");
        }
      }
      case 6 -> { // A checkpoint.
        put(driver, one);
        use(other);
        driver.rename(one, other, 0);
      }
      case 7, 8 -> {
        use(other);
        driver.link(one, other);
      }
      case 9, 10 -> driver.unlink(one);
      case 11 -> {
        use(one);
        driver.symlink("target" + serial++, one);
      }
      case 12, 13, 14, 15 -> {
        String path = directory();
        use(path);
        driver.mkdir(path);
      }
      case 16 -> driver.rmdir(one);
      case 17, 18, 19, 20 -> {
        String to = random.nextInt(3) == 0 ? directory() : other;
        use(to);
        driver.rename(one, to, 0);
      }
      case 21, 22 -> driver.rename(one, other, OutputCalls.RENAME_EXCHANGE);
      case 23 -> {
        if (type(driver, one) != null && type(driver, one) != FileType.SYMBOLIC_LINK) {
          driver.chmod(one, random.nextBoolean() ? 0700 : 0711);
        }
      }
      case 24 -> driver.setTimes(one, Instant.ofEpochSecond(1_000_000_000L + serial++));
      default -> driver.mknod(one, 0010644);
    }
  }

  private void put(Driver driver, String path) throws FsException {
    use(path);
    if (type(driver, path) == null || type(driver, path) == FileType.REGULAR) {
      driver.put(path, text());
    }
  }

  private static @Nullable FileType type(Driver driver, String path) throws FsException {
    Node node = driver.find(path);
    return node == null ? null : node.attributes().type();
  }
}
