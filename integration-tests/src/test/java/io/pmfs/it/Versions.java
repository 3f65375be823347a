package io.pmfs.it;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** The two versions of a dataset of which some files change, and which of them is read. */
final class Versions {
  /** All files are of this time before they change. */
  private static final long BEFORE_SECONDS = 1_000_000_000;

  private final Path root;
  private final Map<String, byte[]> before = new LinkedHashMap<>();
  private final Map<String, byte[]> after = new LinkedHashMap<>();

  /** What is read of a file. */
  enum Version {
    /** The old one, of a file that has changed. */
    OLD,
    /** The file as it is. */
    NEW,
    /** Bytes, or a size, that no version of the file has. */
    NEITHER
  }

  /** How a file changes; the first three in place. */
  private enum Change {
    LONGER,
    SHORTER,
    SAME_SIZE,
    REPLACED
  }

  /**
   * @param each so many files, one changes
   */
  Versions(Dataset dataset, int each) {
    this.root = dataset.root();
    Change[] changes = Change.values();
    List<Dataset.Item> items = dataset.items();
    for (int i = 0; i < items.size(); i++) {
      String name = items.get(i).name();
      byte[] content = items.get(i).content();
      before.put(name, content);
      if (i % each == each / 2) {
        after.put(name, changed(content, changes[i / each % changes.length]));
      }
      Posix.check(Posix.utimens(root.resolve(name).toString(), BEFORE_SECONDS, 0));
    }
  }

  private static byte[] changed(byte[] content, Change change) {
    int size =
        switch (change) {
          case LONGER, REPLACED -> content.length + content.length / 3 + 1;
          case SHORTER -> content.length - content.length / 3;
          case SAME_SIZE -> content.length;
        };
    byte[] changed = new byte[size];
    new Random(size).nextBytes(changed);
    return changed;
  }

  List<String> names() {
    return List.copyOf(before.keySet());
  }

  /** The files that change. */
  List<String> changing() {
    return List.copyOf(after.keySet());
  }

  /** Changes them. */
  void change() {
    Change[] changes = Change.values();
    int index = 0;
    for (Map.Entry<String, byte[]> file : after.entrySet()) {
      change(root.resolve(file.getKey()), file.getValue(), changes[index++ % changes.length]);
    }
  }

  private static void change(Path file, byte[] content, Change change) {
    try {
      if (change == Change.REPLACED) {
        Path other = file.resolveSibling("other");
        Files.write(other, content);
        Files.move(other, file, StandardCopyOption.ATOMIC_MOVE);
      } else {
        Posix.write(file.toString(), 0, content);
        Faults.truncate(file, content.length);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Which version a file has below a directory. */
  Version read(Path directory, String name) throws IOException {
    Path file = directory.resolve(name);
    byte[] content = Files.readAllBytes(file);
    boolean hasItsSize = Files.size(file) == content.length;
    byte[] now = after.getOrDefault(name, before.get(name));
    if (hasItsSize && Arrays.equals(content, now)) {
      return Version.NEW;
    }
    return hasItsSize && Arrays.equals(content, before.get(name)) ? Version.OLD : Version.NEITHER;
  }
}
