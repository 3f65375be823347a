package io.pmfs.it;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** What is mounted, as /proc/self/mountinfo says. */
final class Mounts {
  private Mounts() {}

  static boolean at(Path mountpoint) {
    return all().contains(mountpoint.toString());
  }

  static int count(Path mountpoint) {
    return (int) all().stream().filter(mountpoint.toString()::equals).count();
  }

  static List<String> below(Path directory) {
    return all().stream().filter(m -> m.startsWith(directory + "/")).toList();
  }

  /** Mount options and super-block options of a mount point. */
  static String options(Path mountpoint) {
    return lines().stream()
        .filter(l -> l.split(" ", -1)[4].equals(mountpoint.toString()))
        .map(l -> l.split(" ", -1)[5] + "," + l.substring(l.lastIndexOf(' ') + 1))
        .findFirst()
        .orElseThrow(() -> new AssertionError("not mounted: " + mountpoint));
  }

  private static List<String> all() {
    return lines().stream().map(l -> l.split(" ", -1)[4]).toList();
  }

  private static List<String> lines() {
    try {
      return Files.readAllLines(Path.of("/proc/self/mountinfo"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
