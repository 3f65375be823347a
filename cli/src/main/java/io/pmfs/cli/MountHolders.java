package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Finds the processes that keep a mount busy, by their entries in /proc. */
final class MountHolders {
  private static final int MAX_HOLDERS = 8;

  private MountHolders() {}

  /** Lines such as {@code pid 123 (python3) has /mnt/x/y open}; one for each process. */
  static List<String> of(Path mountpoint, Path root) {
    List<String> holders = new ArrayList<>();
    try (DirectoryStream<Path> processes =
        Files.newDirectoryStream(root.resolve("proc"), "[0-9]*")) {
      for (Path process : processes) {
        String use = use(process, mountpoint);
        if (use != null && holders.size() < MAX_HOLDERS) {
          holders.add("pid %s (%s) %s".formatted(process.getFileName(), name(process), use));
        }
      }
    } catch (IOException | java.nio.file.DirectoryIteratorException e) {
      return holders; // without /proc they stay unknown
    }
    return holders;
  }

  private static @Nullable String use(Path process, Path mountpoint) {
    Path cwd = target(process.resolve("cwd"));
    if (cwd != null && cwd.startsWith(mountpoint)) {
      return "has " + cwd + " as its working directory";
    }
    for (String link : List.of("root", "exe")) {
      Path target = target(process.resolve(link));
      if (target != null && target.startsWith(mountpoint)) {
        return "has " + target + " as its " + link;
      }
    }
    String open = openFile(process, mountpoint);
    return open == null ? mapping(process, mountpoint) : open;
  }

  private static @Nullable String openFile(Path process, Path mountpoint) {
    try (DirectoryStream<Path> descriptors = Files.newDirectoryStream(process.resolve("fd"))) {
      for (Path descriptor : descriptors) {
        Path target = target(descriptor);
        if (target != null && target.startsWith(mountpoint)) {
          return "has " + target + " open";
        }
      }
    } catch (IOException | java.nio.file.DirectoryIteratorException e) {
      return null; // gone, or another user's
    }
    return null;
  }

  private static @Nullable String mapping(Path process, Path mountpoint) {
    String below = " " + mountpoint + "/";
    try {
      String maps = new String(Files.readAllBytes(process.resolve("maps")), UTF_8);
      int found = maps.indexOf(below);
      if (found >= 0) {
        int end = maps.indexOf('\n', found);
        return "has " + maps.substring(found + 1, end < 0 ? maps.length() : end) + " mapped";
      }
    } catch (IOException e) {
      return null; // gone, or another user's
    }
    return null;
  }

  private static @Nullable Path target(Path link) {
    try {
      return Files.readSymbolicLink(link);
    } catch (IOException e) {
      return null; // gone, or another user's
    }
  }

  private static String name(Path process) {
    try {
      return new String(Files.readAllBytes(process.resolve("comm")), UTF_8).strip();
    } catch (IOException e) {
      return "?";
    }
  }
}
