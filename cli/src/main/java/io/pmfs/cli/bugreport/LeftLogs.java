package io.pmfs.cli.bugreport;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Crash logs of JVMs, and logs of mounts that no longer exist. */
public final class LeftLogs {
  private static final int MOST_FILES = 5;
  private static final int MOST_LISTED = 10_000;

  private LeftLogs() {}

  /**
   * The newest of them.
   *
   * @param directory of the logs
   * @param owner as for {@link MountPieces.Mount}
   * @param known logs that are in the report already
   * @param folder of the report
   */
  public static List<Piece> pieces(
      Path directory, long owner, Collection<Path> known, String folder) {
    List<Piece> pieces = new ArrayList<>();
    for (Path file : newest(directory, "hs_err_*.log", List.of())) {
      pieces.add(
          new Piece(
              folder + "/" + Piece.plain(String.valueOf(file.getFileName())),
              "the crash log of a daemon's JVM, without contents of memory",
              Piece.SHORT,
              () -> {
                byte[] log = Tail.first(file, owner);
                return log == null ? null : CrashLog.withoutMemory(log);
              }));
    }
    for (Path file : newest(directory, "*.log", known)) {
      pieces.add(
          new Piece(
              folder + "/" + Piece.plain(String.valueOf(file.getFileName())),
              "the end of the log of a former mount",
              Piece.SHORT,
              () -> Tail.last(file, owner)));
    }
    return pieces;
  }

  private static List<Path> newest(Path directory, String glob, Collection<Path> known) {
    Map<Path, FileTime> times = new HashMap<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, glob)) {
      for (Path file : files) {
        boolean isCrash = String.valueOf(file.getFileName()).startsWith("hs_err_");
        if (times.size() < MOST_LISTED
            && !known.contains(file)
            && isCrash == glob.startsWith("hs")) {
          times.put(file, Files.getLastModifiedTime(file, LinkOption.NOFOLLOW_LINKS));
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      return List.of(); // no such directory, or not readable
    }
    return times.entrySet().stream()
        .sorted(Map.Entry.comparingByValue(Comparator.reverseOrder()))
        .limit(MOST_FILES)
        .map(Map.Entry::getKey)
        .toList();
  }
}
