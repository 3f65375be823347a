package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.base.Splitter;
import java.nio.file.Path;
import java.util.List;

/**
 * All that programs see of a tree: names, types, modes, owners, numbers of links, which names are
 * one file, times of change (of directories too), devices, extended attributes, targets of links,
 * where data and where holes are, and the bytes. One line for each name. Not: times of access and
 * of a change of attributes, numbers of inodes, room that is taken.
 */
record WholeTree(List<String> lines) {
  private static final String PROGRAM =
      """
      import hashlib, os, stat, sys
      first = {}
      def data(path, size):
          file, found, digest = os.open(path, os.O_RDONLY | os.O_NOATIME), [], hashlib.sha256()
          try:
              at = 0
              while at < size:
                  try:
                      begin = os.lseek(file, at, os.SEEK_DATA)
                  except OSError:
                      break
                  at = os.lseek(file, begin, os.SEEK_HOLE)
                  if found and found[-1][1] == begin:
                      begin = found.pop()[0]
                  found.append((begin, at))
              for begin, end in found:
                  for offset in range(begin - begin % 4096, end, 4096):
                      piece = os.pread(file, 4096, offset)
                      if piece.strip(b"\\0"):
                          digest.update(b"%d " % offset + piece)
          finally:
              os.close(file)
          return digest.hexdigest()[:16], found
      def line(path, name):
          s = os.lstat(path)
          parts = [repr(name), stat.filemode(s.st_mode), "%d:%d" % (s.st_uid, s.st_gid)]
          parts += ["links=%d" % s.st_nlink, "mtime=%d" % s.st_mtime_ns]
          if not stat.S_ISDIR(s.st_mode):
              parts += ["size=%d" % s.st_size, "as=%r" % first.setdefault(s.st_ino, name)]
          if stat.S_ISCHR(s.st_mode) or stat.S_ISBLK(s.st_mode):
              parts.append("device=%x" % s.st_rdev)
          if stat.S_ISLNK(s.st_mode):
              parts.append("target=%r" % os.readlink(path))
          for key in sorted(os.listxattr(path, follow_symlinks=False)):
              parts.append("%s=%r" % (key, os.getxattr(path, key, follow_symlinks=False)))
          if stat.S_ISREG(s.st_mode):
              digest, ranges = data(path, s.st_size)
              parts += ["bytes=" + digest, "data=" + ",".join("%d-%d" % r for r in ranges)]
              parts.append("room=%d" % (512 * s.st_blocks))
          print(" ".join(parts))
      def walk(path, name):
          line(path, name)
          if os.path.isdir(path) and not os.path.islink(path):
              for child in sorted(os.listdir(path)):
                  walk(path + b"/" + child, name + b"/" + child)
      sys.setrecursionlimit(10000)
      walk(os.fsencode(sys.argv[1]), b"")
      """;

  /** What ends a line of a regular file: where it has data, and the room that it takes. */
  private static final String DATA = " data=";

  private static final String ROOM = " room=";

  static WholeTree of(Path root) {
    return new WholeTree(
        Command.run("python3", "-c", PROGRAM, root.toString()).expect(0).out().lines().toList());
  }

  /** The source of a mount has all that the mount shows, and nothing else. */
  static void assertSourceEquals(Path source, MountedPmfs mount) {
    WholeTree shown = of(mount.mountpoint());
    WholeTree there = of(source);
    assertThat(there.withoutData()).isEqualTo(shown.withoutData());
    for (int i = 0; i < there.lines.size(); i++) {
      assertHoles(there.lines.get(i), shown.lines.get(i));
    }
  }

  private List<String> withoutData() {
    return lines.stream().map(line -> line.replaceFirst(DATA + ".*", "")).toList();
  }

  /** Where a file has data, of the file with this name. */
  String data(String name) {
    return lines.stream()
        .filter(line -> line.startsWith("b'/" + name + "' "))
        .map(line -> line.replaceFirst(".*" + DATA, "").replaceFirst(ROOM + ".*", ""))
        .findFirst()
        .orElseThrow();
  }

  /**
   * There are holes at the source where the mount has some. What was only allocated is a hole at
   * the source; but file systems take it for data while it is in memory, as it was read: then the
   * source may have got zeros.
   */
  private static void assertHoles(String there, String shown) {
    List<long[]> wide = ranges(shown);
    List<long[]> more =
        ranges(there).stream()
            .filter(
                data ->
                    wide.stream().noneMatch(range -> range[0] <= data[0] && data[1] <= range[1]))
            .toList();
    if (!more.isEmpty()) {
      assertThat(room(there)).as("%s%n%s", there, shown).isLessThanOrEqualTo(room(shown));
    }
  }

  private static long room(String line) {
    return Long.parseLong(line.replaceFirst(".*" + ROOM, ""));
  }

  private static List<long[]> ranges(String line) {
    int at = line.lastIndexOf(DATA);
    String text = at < 0 ? "" : line.substring(at + DATA.length(), line.lastIndexOf(ROOM));
    return Splitter.on(',')
        .omitEmptyStrings()
        .splitToStream(text)
        .map(range -> Splitter.on('-').splitToList(range))
        .map(ends -> new long[] {Long.parseLong(ends.get(0)), Long.parseLong(ends.get(1))})
        .toList();
  }
}
