package io.pmfs.mounts;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.machine.MountTable;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The processes that have a mount in their mount namespace, as far as /proc shows them. A namespace
 * created while a mount exists has a copy of it (mount_namespaces(7)), which keeps the session
 * after the mount itself is unmounted.
 */
public final class MountViewers {
  private static final int MAX_NAMED = 4;

  private final Path processes;

  public MountViewers(Surroundings surroundings) {
    this.processes = surroundings.root().resolve("proc");
  }

  /**
   * One process of each other namespace that has the mount, such as {@code pid 17 (sleep)}, up to a
   * limit.
   *
   * @param device the device number of a session, as in mountinfo. The session may have ended and
   *     the number been reused, so the source must match too
   */
  public List<String> elsewhere(String device, String source) {
    String own = namespace(processes.resolve("self"));
    Set<String> ownMounts = ids(text(processes.resolve("self/mountinfo")));
    Set<String> seen = new HashSet<>();
    List<String> viewers = new ArrayList<>();
    for (Path process : all()) {
      String namespace = namespace(process);
      if ((namespace != null && namespace.equals(own)) || seen.contains(namespace)) {
        continue;
      }
      String mounts = text(process.resolve("mountinfo"));
      // If the namespace is hidden, mount ids identify it: no two namespaces share one.
      boolean isOwn = namespace == null && !Collections.disjoint(ownMounts, ids(mounts));
      if (isOwn
          || !seen.add(namespace == null ? mounts : namespace)
          || !has(mounts, device, source)) {
        continue;
      }
      if (viewers.size() == MAX_NAMED) {
        viewers.add("more");
        break;
      }
      viewers.add(
          "pid %s (%s)".formatted(process.getFileName(), text(process.resolve("comm")).strip()));
    }
    return List.copyOf(viewers);
  }

  /**
   * Whether the mount can no longer be reached: it is in a private namespace with no processes
   * except these and their children, and no file keeps the namespace (nsenter(1)). False if /proc
   * does not show all processes.
   */
  public boolean areGone(String device, Set<Long> own) {
    String namespace = namespace(processes.resolve("self"));
    if (namespace == null || text(processes.resolve("1/mountinfo")).isEmpty()) {
      return false;
    }
    Set<String> seen = new HashSet<>();
    for (Path process : all()) {
      String other = namespace(process);
      if (isOneOf(process, own)
          || (other != null && !other.equals(namespace) && !seen.add(other))) {
        continue;
      }
      String mounts = text(process.resolve("mountinfo"));
      if (namespace.equals(other)
          || pmfsMounts(mounts, device).findAny().isPresent()
          || keeps(mounts, namespace)) {
        return false;
      }
    }
    return true;
  }

  private static boolean isOneOf(Path process, Set<Long> own) {
    return own.contains(Long.parseLong(process.getFileName().toString()))
        || own.contains(parent(process));
  }

  /** The fourth field of stat, proc(5); the second is in parentheses and may contain anything. */
  private static long parent(Path process) {
    String stat = text(process.resolve("stat"));
    String[] fields = stat.substring(stat.lastIndexOf(')') + 1).strip().split(" ", 3);
    return fields.length > 1 ? Long.parseLong(fields[1]) : -1;
  }

  private static boolean has(String mounts, String device, String source) {
    return pmfsMounts(mounts, device).anyMatch(mount -> mount.source().equals(source));
  }

  /** Compares fields, because users choose the sources of their mounts, which are one of them. */
  private static Stream<MountTable.Mount> pmfsMounts(String mounts, String device) {
    return mounts
        .lines()
        .filter(line -> line.contains(" " + device + " "))
        .flatMap(line -> MountTable.parse(line).all().stream())
        .filter(mount -> mount.isPmfs() && mount.device().equals(device));
  }

  /** Whether a file keeps the namespace: the fourth field is then its name. */
  private static boolean keeps(String mounts, String namespace) {
    return mounts
        .lines()
        .map(line -> line.split(" ", 5))
        .anyMatch(fields -> fields.length > 3 && fields[3].equals(namespace));
  }

  /** The ids of mounts, which differ in each namespace. */
  private static Set<String> ids(String mounts) {
    return mounts
        .lines()
        .map(line -> line.substring(0, Math.max(0, line.indexOf(' '))))
        .collect(Collectors.toSet());
  }

  /** Processes by ascending id, because the first are seldom in a private namespace. */
  private List<Path> all() {
    List<Path> all = new ArrayList<>();
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(processes, "[0-9]*")) {
      entries.forEach(all::add);
    } catch (IOException | DirectoryIteratorException e) {
      return List.of(); // without /proc they are unknown
    }
    all.sort(Comparator.comparingLong(process -> Long.parseLong(process.getFileName().toString())));
    return all;
  }

  /** A namespace such as {@code mnt:[4026531841]}; null if it is hidden. */
  private static @Nullable String namespace(Path process) {
    try {
      return Files.readSymbolicLink(process.resolve("ns/mnt")).toString();
    } catch (IOException e) {
      return null;
    }
  }

  private static String text(Path file) {
    try {
      return new String(Files.readAllBytes(file), ISO_8859_1);
    } catch (IOException e) {
      return ""; // ended, or hidden
    }
  }
}
