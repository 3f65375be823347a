package io.pmfs.cache;

import io.pmfs.cache.SharedCopy.State;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Finds the copies that an earlier run left, by the names of their files. What is no copy is
 * removed.
 */
final class FoundCopies {
  private FoundCopies() {}

  /**
   * A name of a copy's file.
   *
   * @param inode identifies the file, which has other names if equal copies are kept once
   */
  private record Found(CopyKey.Named name, Path file, Object inode, Instant used) {}

  /** The copies below a directory, the least recently used one first. */
  static List<SharedCopy> below(Path directory) throws IOException {
    Map<Object, List<Found>> byInode =
        names(directory).stream().collect(Collectors.groupingBy(Found::inode));
    List<SharedCopy> copies = new ArrayList<>();
    for (List<Found> names : byInode.values()) {
      names.sort(Comparator.comparing(found -> found.name().user() == CopyKey.NOBODY));
      Found first = names.get(0);
      SharedCopy copy =
          new SharedCopy(
              first.name().key(), first.name().user(), State.FOUND, first.file(), first.used());
      copy.checksum = first.name().checksum();
      copy.reached = copy.key.size();
      for (Found other : names.subList(1, names.size())) {
        if (other.name().user() == CopyKey.NOBODY && other.name().checksum() == copy.checksum) {
          copy.addEqual(other.name().key());
        } else {
          Files.deleteIfExists(other.file());
        }
      }
      if (copy.user == CopyKey.NOBODY) {
        for (Found name : names) {
          Files.deleteIfExists(name.file());
        }
      } else {
        copies.add(copy);
      }
    }
    copies.sort(Comparator.comparing(copy -> copy.used));
    return copies;
  }

  /** One for each key: a service that was killed may have left two. */
  private static Collection<Found> names(Path directory) throws IOException {
    Map<CopyKey, Found> byKey = new HashMap<>();
    try (Stream<Path> files = Files.find(directory, 3, (path, status) -> status.isRegularFile())) {
      for (Path file : (Iterable<Path>) files::iterator) {
        CopyKey.Named name = CopyKey.parse(directory.relativize(file));
        BasicFileAttributes status = Files.readAttributes(file, BasicFileAttributes.class);
        if (name == null || status.size() != name.key().size()) {
          Files.deleteIfExists(file);
          continue;
        }
        Instant used = status.lastModifiedTime().toInstant();
        Found twin = byKey.put(name.key(), new Found(name, file, status.fileKey(), used));
        if (twin != null) {
          Files.deleteIfExists(twin.file());
        }
      }
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
    return byKey.values();
  }
}
