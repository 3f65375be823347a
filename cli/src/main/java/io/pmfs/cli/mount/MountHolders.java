package io.pmfs.cli.mount;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.daemon.report.MountReport;
import io.pmfs.machine.Limited;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Finds the processes that keep a mount busy, by their entries in /proc. */
public final class MountHolders {
  private static final int MAX_HOLDERS = 8;
  private static final Duration DETACHED_LIMIT = Duration.ofSeconds(5);

  /** The most ancestors of a command that are checked for scripts of pmfs. */
  private static final int MAX_ANCESTORS = 32;

  /** Scripts of pmfs, as opposed to scripts of users. */
  private static final Set<String> SCRIPTS =
      Set.of("pmfs", "pmfs-run", "pmfs-supervise", "pmfs-job", "mount.pmfs", "umount.pmfs");

  private MountHolders() {}

  /**
   * Lines such as {@code pid 123 (python3) has /mnt/x/y open}, one for each process except those of
   * this command.
   *
   * @param self the process of this command
   */
  static List<String> of(Path mountpoint, Path root, long self) {
    List<String> holders = new ArrayList<>();
    Set<String> own = own(root, self);
    try (DirectoryStream<Path> processes =
        Files.newDirectoryStream(root.resolve("proc"), "[0-9]*")) {
      for (Path process : processes) {
        boolean isOwn = own.contains(String.valueOf(process.getFileName()));
        String use = isOwn ? null : use(process, mountpoint);
        if (use != null && holders.size() < MAX_HOLDERS) {
          holders.add("pid %s (%s) %s".formatted(process.getFileName(), name(process), use));
        }
      }
    } catch (IOException | java.nio.file.DirectoryIteratorException e) {
      return holders; // without /proc nothing can be found
    }
    return holders;
  }

  /**
   * The processes and open files of a detached mount, without those of other users.
   *
   * @param device the mount's device number, as in mountinfo
   * @param self the pid of this command
   */
  public static MountReport.Detached ofDetached(String device, Path root, long self) {
    try {
      // Limited, because stat of an open descriptor hangs if its file system does.
      return Limited.call(DETACHED_LIMIT, () -> opened(device, root, self));
    } catch (IOException e) {
      return MountReport.Detached.UNCOUNTED;
    }
  }

  private static MountReport.Detached opened(String device, Path root, long self)
      throws IOException {
    Set<String> own = own(root, self);
    Set<Path> files = new HashSet<>();
    List<String> holders = new ArrayList<>();
    try (DirectoryStream<Path> processes =
        Files.newDirectoryStream(root.resolve("proc"), "[0-9]*")) {
      for (Path process : processes) {
        boolean isOwn = own.contains(String.valueOf(process.getFileName()));
        Set<Path> open = isOwn ? Set.of() : openedBy(process, device);
        files.addAll(open);
        if (!open.isEmpty() && holders.size() < MAX_HOLDERS) {
          holders.add(
              "pid %s (%s) has %s open"
                  .formatted(process.getFileName(), name(process), open.iterator().next()));
        }
      }
    }
    return new MountReport.Detached(files.size(), holders);
  }

  /** Paths relative to the mount's root, which are all that the kernel has for a detached mount. */
  private static Set<Path> openedBy(Path process, String device) {
    Set<Path> open = new TreeSet<>(mapped(device, process));
    Set<String> attached = mountIds(process);
    try (DirectoryStream<Path> descriptors = Files.newDirectoryStream(process.resolve("fd"))) {
      for (Path descriptor : descriptors) {
        Path target = target(descriptor);
        if (target != null
            && target.isAbsolute()
            && !attached.contains(mountId(process, descriptor))
            && device.equals(device(descriptor))) {
          open.add(target);
        }
      }
    } catch (IOException | java.nio.file.DirectoryIteratorException e) {
      return open; // gone, or another user's
    }
    return open;
  }

  /** The mounts attached in the process's namespace, whose files are skipped without stat. */
  private static Set<String> mountIds(Path process) {
    return text(process.resolve("mountinfo"))
        .lines()
        .map(line -> line.split(" ", 2)[0])
        .collect(Collectors.toSet());
  }

  private static String mountId(Path process, Path descriptor) {
    return text(process.resolve("fdinfo").resolve(descriptor.getFileName()))
        .lines()
        .filter(line -> line.startsWith("mnt_id:"))
        .map(line -> line.substring("mnt_id:".length()).strip())
        .findFirst()
        .orElse("");
  }

  private static @Nullable String device(Path descriptor) {
    try {
      long device = ((Number) Files.getAttribute(descriptor, "unix:dev")).longValue();
      long minor = (device & 0xff) | ((device >>> 12) & 0xfff00);
      return ((device >>> 8) & 0xfff) + ":" + minor;
    } catch (IOException e) {
      return null;
    }
  }

  /** Mapped files from maps, proc(5), where the device is hexadecimal. */
  private static Set<Path> mapped(String device, Path process) {
    String[] numbers = device.split(":", 2);
    String written =
        "%02x:%02x".formatted(Integer.parseInt(numbers[0]), Integer.parseInt(numbers[1]));
    Set<Path> mapped = new HashSet<>();
    for (String line : text(process.resolve("maps")).split("\n", -1)) {
      String[] fields = line.split(" +", 6);
      if (fields.length == 6 && fields[3].equals(written)) {
        mapped.add(Path.of(fields[5]));
      }
    }
    return mapped;
  }

  private static Set<String> own(Path root, long self) {
    Set<String> own = new HashSet<>();
    String pid = Long.toString(self);
    for (int i = 0; i < MAX_ANCESTORS && !pid.equals("0"); i++) {
      Path process = root.resolve("proc").resolve(pid);
      if (i == 0 || isScript(process)) {
        own.add(pid);
      }
      pid = parent(process);
    }
    return own;
  }

  /** Checks a shell's first argument that is not an option, the path of its script. */
  private static boolean isScript(Path process) {
    String[] words = text(process.resolve("cmdline")).split("\0", -1);
    for (int i = 1; i < words.length; i++) {
      if (!words[i].startsWith("-")) {
        return SCRIPTS.contains(words[i].substring(words[i].lastIndexOf('/') + 1));
      }
    }
    return false;
  }

  /** The fourth field of stat, proc(5); the second may contain anything, in parentheses. */
  private static String parent(Path process) {
    String stat = text(process.resolve("stat"));
    String[] fields = stat.substring(stat.lastIndexOf(')') + 1).strip().split(" ", 3);
    return fields.length > 1 ? fields[1] : "0";
  }

  private static String text(Path file) {
    try {
      return new String(Files.readAllBytes(file), UTF_8);
    } catch (IOException e) {
      return ""; // gone, or another user's
    }
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
    String name = text(process.resolve("comm")).strip();
    return name.isEmpty() ? "?" : name;
  }
}
