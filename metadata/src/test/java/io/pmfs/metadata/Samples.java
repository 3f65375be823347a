package io.pmfs.metadata;

import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/** Files of a source that exists only in tests. */
final class Samples {
  static final Instant TIME = Instant.ofEpochSecond(1_700_000_000L, 123_456_789);
  static final int REGULAR_MODE = 0100644;
  static final int DIRECTORY_MODE = 0040755;

  private Samples() {}

  static Attributes attributes(int mode, int linkCount, long size) {
    return new Attributes(mode, linkCount, 1000, 1001, 0, size, 8, TIME, TIME, TIME);
  }

  static Attributes directoryAttributes() {
    return attributes(DIRECTORY_MODE, 2, 4096);
  }

  static Inode root() {
    return new Inode(
        Namespace.ROOT,
        new FileIdentity(0, 1),
        Namespace.ROOT,
        FileName.of(""),
        1,
        null,
        directoryAttributes());
  }

  static void put(Namespace namespace, Inode inode) {
    if (inode.listing() != null) {
      ((RocksNamespace) namespace).markListed(inode.number());
    }
    namespace.updateInode(inode.number(), known -> inode);
  }

  static RocksNamespace open(Path directory, String source, long memoryBytes) {
    return open(directory, source, memoryBytes, UUID.randomUUID());
  }

  static RocksNamespace open(Path directory, String source, long memoryBytes, UUID session) {
    return RocksNamespace.open(directory, source, memoryBytes, session, null, line -> {});
  }

  static SourceEntry file(String name, long sourceInode) {
    return file(FileName.of(name), sourceInode, 1);
  }

  static SourceEntry link(String name, long sourceInode) {
    return file(FileName.of(name), sourceInode, 2);
  }

  static SourceEntry file(FileName name, long sourceInode, int linkCount) {
    return new SourceEntry(
        name,
        new FileIdentity(0, sourceInode),
        // No two files were made in the same moment.
        attributes(REGULAR_MODE, linkCount, 10).withChangeTime(TIME.plusNanos(sourceInode)));
  }

  static SourceEntry directory(String name, long sourceInode) {
    return new SourceEntry(
        FileName.of(name), new FileIdentity(0, sourceInode), directoryAttributes());
  }

  static Listing listing(int session) {
    return new Listing(session, TIME);
  }

  /** Imports a directory in batches of an odd size; returns the inodes that have lost names. */
  static List<Long> importAll(Namespace namespace, long directory, List<SourceEntry> entries) {
    Namespace.DirectoryImport running = namespace.beginImport(directory);
    int batch = 777;
    for (int from = 0; from < entries.size(); from += batch) {
      running.add(entries.subList(from, Math.min(entries.size(), from + batch)));
    }
    running.finish(directoryAttributes(), listing(namespace.session()));
    return lostNames(namespace);
  }

  static List<Long> importAll(Namespace namespace, long directory, SourceEntry... entries) {
    return importAll(namespace, directory, List.of(entries));
  }

  private static List<Long> lostNames(Namespace namespace) {
    List<Long> all = new ArrayList<>();
    List<Long> some = namespace.lostNames(0);
    while (!some.isEmpty()) {
      all.addAll(some);
      some = namespace.lostNames(some.get(some.size() - 1) + 1);
    }
    return all;
  }

  /** Removes the inodes that have no name any more. */
  static void forgetNameless(Namespace namespace) {
    for (long number : lostNames(namespace)) {
      if (namespace.removeNameless(number)) {
        namespace.forgotten(List.of(number));
      }
    }
  }

  static List<DirectoryEntry> list(Namespace namespace, long directory) {
    List<DirectoryEntry> entries = new ArrayList<>();
    namespace.list(directory, 0, entries::add);
    return entries;
  }

  static long numberOf(Namespace namespace, long directory, String name) {
    DirectoryEntry entry = namespace.find(directory, FileName.of(name));
    if (entry == null) {
      throw new AssertionError("no " + name + " in directory " + directory);
    }
    return entry.inode();
  }

  static CopyRecord copy(String tier, int... checksums) {
    return new CopyRecord(
        tier, 0, new SourceVersion(10, TIME), 10, 1 << 20, Checksums.of(checksums), false, null);
  }
}
