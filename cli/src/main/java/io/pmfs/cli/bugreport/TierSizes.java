package io.pmfs.cli.bugreport;

import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.FileVisitOption;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.EnumSet;
import org.jspecify.annotations.Nullable;

/** The sizes of what a directory of a tier or of the state holds: numbers, no names. */
final class TierSizes {
  private static final int MOST_FILES = 100_000;
  private static final int MOST_DEPTH = 32;

  private TierSizes() {}

  static String text(Path directory) throws IOException {
    StringBuilder text = new StringBuilder(directory.toString()).append('\n');
    FileStore disk = Files.getFileStore(directory);
    text.append("  disk: ")
        .append(disk.type())
        .append(", bytes ")
        .append(disk.getTotalSpace())
        .append(", available to pmfs ")
        .append(disk.getUsableSpace())
        .append('\n');
    Object mode = Files.getAttribute(directory, "unix:mode");
    text.append("  owner ")
        .append(Files.getAttribute(directory, "unix:uid"))
        .append(", mode ")
        .append(mode instanceof Integer bits ? Integer.toOctalString(bits) : mode)
        .append('\n');
    Count count = new Count();
    if (Files.isDirectory(directory)) {
      Files.walkFileTree(directory, EnumSet.noneOf(FileVisitOption.class), MOST_DEPTH, count);
    }
    return text.append("  ").append(count.text()).append('\n').toString();
  }

  private static final class Count extends SimpleFileVisitor<Path> {
    private long directories;
    private long files;
    private long bytes;
    private long largest;
    private long unreadable;

    String text() {
      return directories
          + " directories, "
          + files
          + (files == MOST_FILES ? " files counted, and there may be more; " : " files, ")
          + bytes
          + " bytes, largest "
          + largest
          + ", not readable "
          + unreadable;
    }

    private FileVisitResult next() {
      return files >= MOST_FILES || Thread.currentThread().isInterrupted()
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
      files++;
      bytes += attributes.size();
      largest = Math.max(largest, attributes.size());
      return next();
    }

    @Override
    public FileVisitResult visitFileFailed(Path file, IOException e) {
      unreadable++;
      return next();
    }

    @Override
    public FileVisitResult postVisitDirectory(Path directory, @Nullable IOException e) {
      return next();
    }
  }
}
