package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.fuse.system.StrangersDirectory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.FileStore;
import java.nio.file.FileVisitOption;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Pieces from files that daemons wrote: logs, crash logs of their JVMs, and sizes of tiers and
 * state. For files in another user's directory, root passes the owner: that user must own the
 * directory and the file, which must be neither a symbolic link nor hard-linked. A negative owner
 * stands for any user.
 */
public final class OwnFiles {
  static final int MOST_OF_LOG = 1 << 20;
  private static final int OLDER_LOGS = 5;
  private static final int MOST_LEFT = 5;
  private static final int MOST_LISTED = 10_000;
  private static final int MOST_FILES = 100_000;
  private static final int MOST_DEPTH = 32;

  private static final Pattern MEMORY =
      Pattern.compile(
          "(?ms)^(?:Register|Top of Stack|Stack slot to memory mapping|Instructions).*?"
              + "(?=^-------------|\\z)");
  private static final Pattern ENVIRONMENT =
      Pattern.compile("(?ms)^Environment Variables:.*?(?=^[ \t]*$|^-------------|\\z)");

  private OwnFiles() {}

  /** The logs of a mount. */
  public static List<Piece> logs(Path log, long owner, String folder) {
    List<Piece> pieces = new ArrayList<>();
    for (int i = 0; i <= OLDER_LOGS; i++) {
      String ending = i == 0 ? "" : "." + i;
      Path file = log.resolveSibling(log.getFileName() + ending);
      String why = i == 0 ? "the end of its log" : "the end of an older log";
      pieces.add(Piece.bytes(folder + "daemon.log" + ending, why, () -> lines(file, owner, true)));
    }
    return pieces;
  }

  /** The newest crash logs, and logs of mounts that no longer exist. */
  public static List<Piece> left(
      Path directory, long owner, Collection<Path> known, String folder) {
    List<Piece> pieces = new ArrayList<>();
    for (Path file : newest(directory, "hs_err_.*\\.log", known)) {
      String why = "the crash log of a daemon's JVM, without contents of memory";
      pieces.add(Piece.bytes(folder + plainName(file), why, () -> crash(file, owner)));
    }
    for (Path file : newest(directory, "(?!hs_err_).*\\.log", known)) {
      String why = "the end of the log of a former mount";
      pieces.add(Piece.bytes(folder + plainName(file), why, () -> lines(file, owner, true)));
    }
    return pieces;
  }

  private static String plainName(Path file) {
    return Piece.plain(file.getFileName());
  }

  private static List<Path> newest(Path directory, String names, Collection<Path> known) {
    try (Stream<Path> files = Files.list(directory)) {
      return files
          .filter(file -> file.getFileName().toString().matches(names) && !known.contains(file))
          .limit(MOST_LISTED)
          .map(file -> Map.entry(file, written(file)))
          .sorted(Map.Entry.comparingByValue(Comparator.reverseOrder()))
          .limit(MOST_LEFT)
          .map(Map.Entry::getKey)
          .toList();
    } catch (IOException | UncheckedIOException e) {
      return List.of(); // no such directory, or not readable
    }
  }

  private static FileTime written(Path file) {
    try {
      return Files.getLastModifiedTime(file, LinkOption.NOFOLLOW_LINKS);
    } catch (IOException e) {
      return FileTime.fromMillis(0);
    }
  }

  /** The last or first lines of a file; null if the file does not exist. */
  static @Nullable String lines(Path file, long owner, boolean isEnd) throws IOException {
    try {
      byte[] bytes = owner < 0 ? part(file, isEnd) : partOf(owner, file, isEnd);
      String text = new String(bytes, ISO_8859_1);
      return bytes.length < MOST_OF_LOG
          ? text
          : isEnd
              ? text.substring(text.indexOf('\n') + 1)
              : text.substring(0, text.lastIndexOf('\n') + 1);
    } catch (NoSuchFileException e) {
      return null;
    }
  }

  private static byte[] part(Path file, boolean isEnd) throws IOException {
    if (Files.exists(file) && !Files.isRegularFile(file)) {
      throw new IOException(file + ": not a regular file"); // opening it could block
    }
    try (FileChannel opened = FileChannel.open(file)) {
      opened.position(isEnd ? Math.max(0, opened.size() - MOST_OF_LOG) : 0);
      return Channels.newInputStream(opened).readNBytes(MOST_OF_LOG);
    }
  }

  /** Opens nothing by a name that the user could change meanwhile. */
  private static byte[] partOf(long owner, Path file, boolean isEnd) throws IOException {
    try (StrangersDirectory directory = StrangersDirectory.open(file.resolveSibling(""), owner);
        StrangersDirectory.OpenFile opened = directory.open(file.getFileName().toString())) {
      return opened.read(isEnd ? Math.max(0, opened.size() - MOST_OF_LOG) : 0, MOST_OF_LOG);
    }
  }

  private static @Nullable String crash(Path file, long owner) throws IOException {
    String log = lines(file, owner, false);
    return log == null ? null : withoutMemory(log);
  }

  /**
   * A JVM's crash log without contents of memory (registers and their targets, the stack) and
   * without the environment.
   */
  static String withoutMemory(String log) {
    String kept = MEMORY.matcher(log).replaceAll("(memory: left out)\n");
    return ENVIRONMENT.matcher(kept).replaceAll("(environment: left out)\n");
  }

  /** The number and sizes of files in a directory of a tier or of the state, without names. */
  public static String sizes(Path directory) throws IOException {
    FileStore disk = Files.getFileStore(directory);
    String head =
        "%s\n  disk: %s, bytes %d, available to pmfs %d\n  owner %s, mode %o\n"
            .formatted(
                directory,
                disk.type(),
                disk.getTotalSpace(),
                disk.getUsableSpace(),
                Files.getAttribute(directory, "unix:uid"),
                (int) Files.getAttribute(directory, "unix:mode"));
    Count count = new Count();
    if (Files.isDirectory(directory)) {
      Files.walkFileTree(directory, EnumSet.noneOf(FileVisitOption.class), MOST_DEPTH, count);
    }
    return head
        + "  %d directories, %d files%s, %d bytes, largest %d, not readable %d\n"
            .formatted(
                count.directories,
                count.files.getCount(),
                count.files.getCount() < MOST_FILES ? "" : " counted, and there may be more",
                count.files.getSum(),
                Math.max(0, count.files.getMax()),
                count.unreadable);
  }

  private static final class Count extends SimpleFileVisitor<Path> {
    private final LongSummaryStatistics files = new LongSummaryStatistics();
    private long directories;
    private long unreadable;

    private FileVisitResult next() {
      return files.getCount() >= MOST_FILES || Thread.currentThread().isInterrupted()
          ? FileVisitResult.TERMINATE
          : FileVisitResult.CONTINUE;
    }

    @Override
    public FileVisitResult preVisitDirectory(Path directory, BasicFileAttributes attributes) {
      directories++;
      return next();
    }

    @Override
    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
      files.accept(attributes.size());
      return next();
    }

    @Override
    public FileVisitResult visitFileFailed(Path file, IOException e) {
      unreadable++;
      return next();
    }
  }
}
