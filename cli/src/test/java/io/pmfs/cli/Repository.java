package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Predicate;

/** The checkout that the tests run in, for tests of its documentation. */
final class Repository {
  /** Maven runs the tests of a module in its directory. */
  static final Path ROOT = Path.of("").toAbsolutePath().resolve("..").normalize();

  private static final Path BUILT = Path.of("target");

  private Repository() {}

  /** All pages, except those in built or hidden directories. */
  static List<MarkdownPage> pages() {
    return files(file -> file.toString().endsWith(".md")).stream().map(MarkdownPage::read).toList();
  }

  static MarkdownPage page(String path) {
    return MarkdownPage.read(ROOT.resolve(path));
  }

  /** Java sources, of the program alone or also of the tests. */
  static List<Path> javaFiles(boolean withTests) {
    return files(file -> file.toString().endsWith(".java") && (withTests || isOfProgram(file)));
  }

  private static boolean isOfProgram(Path file) {
    return file.toString().contains("/src/main/");
  }

  /** The files in scripts/. */
  static List<Path> scripts() {
    return files(file -> file.startsWith(ROOT.resolve("scripts")));
  }

  static String text(Path file) {
    try {
      return Files.readString(file, UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static List<Path> files(Predicate<Path> wanted) {
    List<Path> files = new ArrayList<>();
    try {
      Files.walkFileTree(
          ROOT,
          new SimpleFileVisitor<Path>() {
            @Override
            public FileVisitResult preVisitDirectory(Path directory, BasicFileAttributes a) {
              return isForeign(directory) ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes a) {
              if (a.isRegularFile() && wanted.test(file)) {
                files.add(file);
              }
              return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException e) {
              return FileVisitResult.CONTINUE; // another module is being built
            }
          });
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    files.sort(Comparator.naturalOrder());
    return files;
  }

  /** Whether a directory is built, hidden, or another checkout. */
  private static boolean isForeign(Path directory) {
    Path name = directory.getFileName();
    return name != null
        && !directory.equals(ROOT)
        && (name.equals(BUILT)
            || name.toString().startsWith(".")
            || Files.exists(directory.resolve(".git")));
  }
}
