package io.pmfs.cache;

import io.pmfs.cache.CopyIndex.Entry;
import io.pmfs.table.StateException;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Opens the index of an earlier run. If it is missing or damaged, or was not closed before the
 * machine went down, it is rebuilt from the names of the copies' files.
 */
final class FoundCopies {
  private static final Logger log = LoggerFactory.getLogger(FoundCopies.class);

  private final CopyFiles files;
  private final @Nullable CopyIndex before;
  private final CopyIndex made;
  private long copies;
  private long others;

  private FoundCopies(CopyFiles files, @Nullable CopyIndex before, CopyIndex made) {
    this.files = files;
    this.before = before;
    this.made = made;
  }

  /**
   * @param boot identifies the boot of the machine
   */
  static CopyIndex index(CopyFiles files, byte[] boot) throws IOException {
    try {
      CopyIndex index = opened(files, boot);
      index.opened(boot);
      return index;
    } catch (StateException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  private static CopyIndex opened(CopyFiles files, byte[] boot) throws IOException {
    CopyIndex index = null;
    if (Files.exists(files.index())) {
      try {
        index = new CopyIndex(files.index());
        byte[] openedBy = index.opened();
        if (openedBy == null || Arrays.equals(openedBy, boot)) {
          return index;
        }
      } catch (StateException e) {
        log.warn("rebuilding the index of the copies: {}", e.getMessage());
        if (index != null) {
          index.close();
          index = null;
        }
      }
    }
    Path path = files.index().resolveSibling("index.new");
    remove(path);
    try (CopyIndex before = index;
        CopyIndex made = new CopyIndex(path)) {
      new FoundCopies(files, before, made).read();
    }
    remove(files.index());
    Files.move(path, files.index());
    return new CopyIndex(files.index());
  }

  private static void remove(Path directory) throws IOException {
    if (Files.exists(directory)) {
      try (Stream<Path> all = Files.walk(directory)) {
        for (Path path : (Iterable<Path>) all.sorted((a, b) -> b.compareTo(a))::iterator) {
          Files.delete(path);
        }
      }
    }
  }

  private void read() throws IOException {
    each(files.copies(), fileSystem -> each(fileSystem, part -> each(part, this::add)));
    if (copies + others > 0) {
      log.info("found {} copies by their names; ignored {} other files", copies, others);
    }
  }

  private interface Visitor {
    void visit(Path path) throws IOException;
  }

  private void each(Path directory, Visitor visitor) throws IOException {
    if (!Files.isDirectory(directory)) {
      others++;
      return;
    }
    try (DirectoryStream<Path> paths = Files.newDirectoryStream(directory)) {
      for (Path path : paths) {
        visitor.visit(path);
      }
    }
  }

  private void add(Path file) throws IOException {
    CopyKey.Named name = CopyKey.parse(files.copies().relativize(file));
    BasicFileAttributes status =
        Files.readAttributes(file, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    if (name == null || !status.isRegularFile()) {
      others++;
      return;
    }
    CopyKey key = name.key();
    if (status.size() != key.size() || made.find(key) != null) {
      // The machine ended before it was on the disk, or it is the second one.
      files.discard(file);
      return;
    }
    made.put(null, entry(name, status.lastModifiedTime()));
    copies++;
  }

  private Entry entry(CopyKey.Named name, FileTime made) {
    Entry known = before == null ? null : before.find(name.key());
    return new Entry(
        name.key(),
        known == null ? CopyKey.NOBODY : known.user(),
        name.checksum(),
        known == null ? made.to(TimeUnit.NANOSECONDS) : known.used(),
        0);
  }

  /** Identifies the boot of the machine; a new value each time if that is unknown. */
  static byte[] boot() {
    try {
      return Files.readAllBytes(Path.of("/proc/sys/kernel/random/boot_id"));
    } catch (IOException e) {
      return Instant.now().toString().getBytes(java.nio.charset.StandardCharsets.US_ASCII);
    }
  }
}
