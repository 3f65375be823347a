package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Reads small files of /proc, /sys and /etc. Each char is a byte. */
final class KernelFiles {
  private static final int MOST_BYTES = 256 << 10;

  private final Path root;

  /**
   * Reads the files of one machine.
   *
   * @param root / except in tests
   */
  KernelFiles(Path root) {
    this.root = root;
  }

  /** Its text; throws if it cannot be read. */
  String text(String path) throws IOException {
    try (InputStream in = Files.newInputStream(root.resolve(path))) {
      return new String(in.readNBytes(MOST_BYTES), ISO_8859_1);
    }
  }

  /** All files with their names; for a file that cannot be read, the reason. */
  String all(List<String> paths) {
    StringBuilder text = new StringBuilder();
    for (String path : paths) {
      String content;
      try {
        content = text(path).stripTrailing();
      } catch (IOException e) {
        content = "(" + e.getClass().getSimpleName() + ")";
      }
      text.append(content.indexOf('\n') < 0 ? "/" + path + ": " : "== /" + path + "\n")
          .append(content)
          .append('\n');
    }
    return text.toString();
  }

  /** The names in a directory, sorted; empty if it cannot be read. */
  List<String> names(String directory, int most) {
    List<String> names = new ArrayList<>();
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(root.resolve(directory))) {
      for (Path entry : entries) {
        if (names.size() == most) {
          break;
        }
        names.add(String.valueOf(entry.getFileName()));
      }
    } catch (IOException | DirectoryIteratorException e) {
      return names;
    }
    names.sort(null);
    return names;
  }
}
