package io.pmfs.it;

import static io.pmfs.it.Posix.c;
import static io.pmfs.it.Posix.check;
import static io.pmfs.it.Posix.result;

import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * A source tree with everything that POSIX lets a tree hold and that programs get wrong. All names
 * are byte strings as {@link Posix} takes them.
 */
final class PosixTree {
  private static final long GIB = 1L << 30;

  static final int MANY = 10_000;
  static final int VERY_MANY = 100_000;
  static final int DEPTH = 100;
  static final long SPARSE_SIZE = 5 * GIB + 123;
  static final int HOLE_SIZE = 3 * 1024 * 1024 + 5;
  static final int HOLE_DATA_AT = 2 * 1024 * 1024;

  /** Regular files below {@code data} and their sizes: each boundary of pages and of requests. */
  static final Map<String, Integer> FILES = new LinkedHashMap<>();

  static {
    FILES.put("empty", 0);
    FILES.put("one", 1);
    FILES.put("page-less", 4095);
    FILES.put("page", 4096);
    FILES.put("page-more", 4097);
    FILES.put("request-less", 131_071);
    FILES.put("request", 131_072);
    FILES.put("request-more", 131_073);
    FILES.put("odd", 1_000_003);
    FILES.put("large", 5 * 1024 * 1024 + 17);
  }

  /** Where the sparse file has data, and how long it is there. */
  static final Map<Long, Integer> SPARSE_DATA =
      Map.of(
          0L,
          5,
          GIB + 7,
          4099,
          2 * GIB - 3,
          9,
          4 * GIB - 3,
          8192,
          4 * GIB + 1_000_001,
          131_072,
          SPARSE_SIZE - 17,
          17);

  static final List<String> NAMES =
      List.of(
          "plain",
          "\u00ff\u00fe.bin",
          "\u0080",
          Posix.utf8("Müller-日本-\uD83D\uDE00"),
          "new\nline",
          "tab\tand\u0001",
          "back\\slash",
          "quo'te\"s`$(x)",
          " leading and trailing ",
          "-rf",
          "*?[a]",
          "...",
          ".hidden",
          ".fuse_hidden0000000100000001",
          "n".repeat(255),
          "\u00ff".repeat(255));

  static final byte[] BINARY = new byte[256];

  static {
    for (int i = 0; i < BINARY.length; i++) {
      BINARY[i] = (byte) i;
    }
  }

  private final String root;
  private final boolean xattrs;
  private final String longTarget;

  private PosixTree(String root, boolean xattrs, String longTarget) {
    this.root = root;
    this.xattrs = xattrs;
    this.longTarget = longTarget;
  }

  String root() {
    return root;
  }

  /** Whether the file system that the tree lies on has attributes for users. */
  boolean hasXattrs() {
    return xattrs;
  }

  /** The target of {@code types/long}: 4095 bytes, or 1023 where the file system takes no more. */
  String longTarget() {
    return longTarget;
  }

  static byte[] content(String name) {
    return content(name, FILES.getOrDefault(name, 0));
  }

  static byte[] content(String name, int size) {
    byte[] content = new byte[size];
    new SplittableRandom(name.hashCode()).nextBytes(content);
    return content;
  }

  /** The bytes of the sparse file in a range. */
  static byte[] sparseContent(long offset, int size) {
    byte[] content = new byte[(int) Math.max(0, Math.min(size, SPARSE_SIZE - offset))];
    SPARSE_DATA.forEach(
        (at, length) -> {
          byte[] data = content("sparse@" + at, length);
          for (int i = 0; i < length; i++) {
            long index = at + i - offset;
            if (index >= 0 && index < content.length) {
              content[(int) index] = data[i];
            }
          }
        });
    return content;
  }

  static byte[] holeContent() {
    byte[] content = new byte[HOLE_SIZE];
    byte[] data = content("hole", 1000);
    System.arraycopy(data, 0, content, HOLE_DATA_AT, data.length);
    return content;
  }

  static PosixTree create(Path directory) {
    String root = Posix.path(directory);
    data(root);
    names(root);
    directories(root);
    String longTarget = types(root);
    return new PosixTree(root, attributes(root), longTarget);
  }

  private static void data(String root) {
    mkdir(root + "/data");
    FILES.forEach((name, size) -> Posix.write(root + "/data/" + name, 0, content(name)));
    SPARSE_DATA.forEach(
        (at, size) -> Posix.write(root + "/data/sparse", at, content("sparse@" + at, size)));
    Posix.write(root + "/data/hole", HOLE_DATA_AT, content("hole", 1000));
    check(result(Posix.LIBC.truncate(c(root + "/data/hole"), HOLE_SIZE)));
  }

  private static void names(String root) {
    mkdir(root + "/names");
    for (String name : NAMES) {
      Posix.write(root + "/names/" + name, 0, content(name, 100));
    }
    String deep = root + "/deep";
    for (int i = 0; i < DEPTH; i++) {
      mkdir(deep);
      deep += "/" + level(i);
    }
    Posix.write(deep, 0, content("deep", 100));
  }

  /** The name of what lies in the directory at a depth: a directory, or the file at the end. */
  static String level(int depth) {
    return String.format("level-%03d-%s", depth, "x".repeat(10));
  }

  static String deepFile() {
    StringBuilder path = new StringBuilder("deep");
    for (int i = 0; i < DEPTH; i++) {
      path.append('/').append(level(i));
    }
    return path.toString();
  }

  private static void directories(String root) {
    mkdir(root + "/directories");
    mkdir(root + "/directories/empty");
    fill(root + "/directories/single", 1);
    fill(root + "/directories/many", MANY);
    fill(root + "/directories/very-many", VERY_MANY);
  }

  /**
   * Beyond the first ten thousand names are hard links: a link takes a tenth of a new file's time.
   */
  private static void fill(String directory, int count) {
    mkdir(directory);
    for (int i = 0; i < count; i++) {
      byte[] path = c(directory + "/f" + i);
      if (i < MANY) {
        check(result(Posix.LIBC.mknod(path, Stat.S_IFREG | 0644, 0)));
      } else {
        check(result(Posix.LIBC.link(c(directory + "/f" + i % 1000), path)));
      }
    }
  }

  private static String types(String root) {
    String types = root + "/types/";
    mkdir(root + "/types");
    Posix.write(types + "file", 0, content("file", 100));
    check(result(Posix.LIBC.mknod(c(types + "fifo"), Stat.S_IFIFO | 0640, 0)));
    check(result(Posix.LIBC.mknod(c(types + "socket"), Stat.S_IFSOCK | 0600, 0)));
    if (Machine.isRoot()) {
      // Major 1, minor 5 is /dev/zero.
      check(result(Posix.LIBC.mknod(c(types + "device"), Stat.S_IFCHR | 0666, 0x105)));
    }
    symlink("file", types + "link");
    symlink("../data", types + "link-to-directory");
    symlink("nowhere", types + "dangling");
    symlink("loop", types + "loop");
    symlink("\u00ff\nbytes", types + "link-of-bytes");
    mkdir(types + "other");
    check(result(Posix.LIBC.link(c(types + "file"), c(types + "hard"))));
    check(result(Posix.LIBC.link(c(types + "file"), c(types + "other/hard"))));
    String target = "t".repeat(4095);
    if (result(Posix.LIBC.symlink(c(target), c(types + "long"))) < 0) {
      target = "t".repeat(1023);
      symlink(target, types + "long");
    }
    return target;
  }

  private static void symlink(String target, String path) {
    check(result(Posix.LIBC.symlink(c(target), c(path))));
  }

  private static boolean attributes(String root) {
    String attributes = root + "/attributes/";
    mkdir(root + "/attributes");
    for (int mode : List.of(0, 0400, 0600, 0644, 0755, 01644, 02755, 04755, 07777)) {
      String file = attributes + "mode-" + Integer.toOctalString(mode);
      Posix.write(file, 0, content("mode", 10));
      check(result(Posix.LIBC.chmod(c(file), mode)));
    }
    mkdir(attributes + "sticky");
    check(result(Posix.LIBC.chmod(c(attributes + "sticky"), 01777)));
    mkdir(attributes + "closed");
    Posix.write(attributes + "closed/file", 0, content("closed", 10));
    check(result(Posix.LIBC.chmod(c(attributes + "closed"), 0700)));
    if (Machine.isRoot()) {
      Posix.write(attributes + "owned", 0, content("owned", 10));
      check(result(Posix.LIBC.chown(c(attributes + "owned"), 12_345, 54_321)));
      symlink("owned", attributes + "owned-link");
      check(result(Posix.LIBC.lchown(c(attributes + "owned-link"), 65_530, 65_531)));
    }
    for (Map.Entry<String, long[]> time : TIMES.entrySet()) {
      Posix.write(attributes + time.getKey(), 0, content("time", 10));
      check(Posix.utimens(attributes + time.getKey(), time.getValue()[0], time.getValue()[1]));
    }
    Posix.write(attributes + "xattrs", 0, content("xattrs", 10));
    Posix.write(attributes + "no-xattrs", 0, content("xattrs", 10));
    boolean supported = Posix.setxattr(attributes + "xattrs", "user.text", new byte[] {'a'}) >= 0;
    if (supported) {
      check(Posix.setxattr(attributes + "xattrs", "user.binary", BINARY));
      check(Posix.setxattr(attributes + "xattrs", "user.empty", new byte[0]));
      check(Posix.setxattr(attributes + "sticky", "user.directory", new byte[] {1, 0, 2}));
    }
    return supported;
  }

  /** Modification times, in seconds and nanoseconds, by the file that has them. */
  static final Map<String, long[]> TIMES =
      Map.of(
          "time-epoch", new long[] {0, 0},
          "time-nanos", new long[] {1_600_000_000L, 123_456_789},
          "time-last-nano", new long[] {1_600_000_000L, 999_999_999},
          "time-before-epoch", new long[] {-2, 500_000_001},
          "time-1902", new long[] {-2_145_916_800L, 1},
          "time-2106", new long[] {(1L << 32) + 1, 7},
          "time-2400", new long[] {13_569_465_600L, 42});

  private static void mkdir(String path) {
    check(result(Posix.LIBC.mkdir(c(path), 0755)));
  }

  /** The keys of a map that is without an order, in one that is the same each time. */
  static <K extends Comparable<K>> List<K> sorted(Map<K, ?> map) {
    List<K> keys = new java.util.ArrayList<>(map.keySet());
    Collections.sort(keys);
    return keys;
  }
}
