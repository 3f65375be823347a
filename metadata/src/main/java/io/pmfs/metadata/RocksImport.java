package io.pmfs.metadata;

import io.pmfs.metadata.Database.Batch;
import io.pmfs.metadata.Values.NameValue;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One import of a directory. Each name written carries the import's token; the names of the
 * directory with another token at the end are the ones that were not added.
 */
final class RocksImport implements Namespace.DirectoryImport {
  /** Entries written, or removed, at once. */
  static final int BATCH_ENTRIES = 1024;

  private final RocksNamespace namespace;
  private final Database database;
  private final ReentrantLock inodeUpdates;
  private final long directory;
  private final long token;
  private final boolean fresh;
  private final List<DirectoryEntry> replaced = new ArrayList<>();
  private long position;
  private boolean finished;

  /**
   * Starts at position 1.
   *
   * @param fresh whether the directory has no names yet, so that none need be looked up
   */
  RocksImport(RocksNamespace namespace, long directory, long token, boolean fresh) {
    this.namespace = namespace;
    this.database = namespace.database();
    this.inodeUpdates = namespace.inodeUpdates();
    this.directory = directory;
    this.token = token;
    this.fresh = fresh;
  }

  @Override
  public List<Inode> add(List<SourceEntry> entries) {
    checkRunning();
    List<Inode> previous = new ArrayList<>();
    for (int from = 0; from < entries.size(); from += BATCH_ENTRIES) {
      int to = Math.min(entries.size(), from + BATCH_ENTRIES);
      addBatch(entries.subList(from, to), previous);
    }
    return previous;
  }

  private void addBatch(List<SourceEntry> entries, List<Inode> previous) {
    boolean linked = entries.stream().anyMatch(RocksImport::isLinked);
    if (fresh && !linked) {
      // New names of new inodes: nothing is read that another import could write.
      database.write(
          batch -> {
            for (SourceEntry entry : entries) {
              put(batch, entry, namespace.numbers().take(), null);
            }
          });
      return;
    }
    inodeUpdates.lock();
    try {
      Resolution resolution = new Resolution(database, directory, entries, fresh);
      resolution.resolve(namespace.numbers());
      database.write(
          batch -> {
            for (int i = 0; i < entries.size(); i++) {
              put(batch, entries.get(i), resolution.number(i), resolution.previous(i));
              DirectoryEntry former = resolution.replaced(i);
              if (former != null) {
                batch.delete(Family.ALIASES, Keys.alias(former.inode(), directory, former.name()));
              }
            }
          });
      for (int i = 0; i < entries.size(); i++) {
        DirectoryEntry former = resolution.replaced(i);
        if (former != null) {
          replaced.add(former);
        }
      }
      previous.addAll(resolution.previousInodes());
    } finally {
      inodeUpdates.unlock();
    }
  }

  private void put(Batch batch, SourceEntry entry, long number, @Nullable Inode before) {
    FileName name = entry.name();
    Attributes attributes = entry.attributes();
    FileType type = attributes.type();
    position++;
    Inode inode =
        new Inode(
            number,
            entry.identity(),
            directory,
            name,
            namespace.session(),
            before == null ? null : before.listing(),
            attributes);
    batch.put(Family.INODES, Keys.number(number), Values.inode(inode));
    batch.put(
        Family.NAMES,
        Keys.name(directory, name),
        Values.name(new NameValue(number, type, position, token)));
    batch.put(
        Family.LISTING, Keys.position(directory, position), Values.listed(number, type, name));
    if (isLinked(entry)) {
      batch.put(Family.LINKS, Keys.link(entry.identity()), Values.number(number));
      batch.put(Family.ALIASES, Keys.alias(number, directory, name), Values.bytes(new byte[0]));
    }
  }

  /** Whether the file may have other names, which must get the same number. */
  static boolean isLinked(SourceEntry entry) {
    Attributes attributes = entry.attributes();
    return attributes.linkCount() > 1 && attributes.type() != FileType.DIRECTORY;
  }

  @Override
  public List<DirectoryEntry> finish(Attributes attributes, Listing listing) {
    checkRunning();
    List<DirectoryEntry> removed = fresh ? new ArrayList<>() : notAdded();
    for (int from = 0; from < removed.size(); from += BATCH_ENTRIES) {
      List<DirectoryEntry> some =
          removed.subList(from, Math.min(removed.size(), from + BATCH_ENTRIES));
      change(batch -> some.forEach(entry -> removeName(batch, entry)));
    }
    removed.addAll(replaced);
    for (DirectoryEntry entry : removed) {
      change(batch -> moveToOtherName(batch, entry));
    }
    change(
        batch -> {
          Inode inode = namespace.inode(directory);
          if (inode == null) {
            throw new NamespaceException(
                "directory " + directory + " was removed while it was imported", null);
          }
          batch.put(
              Family.INODES,
              Keys.number(directory),
              Values.inode(checked(withListing(inode, listing, attributes), namespace.session())));
        });
    finished = true;
    return removed;
  }

  private List<DirectoryEntry> notAdded() {
    List<DirectoryEntry> removed = new ArrayList<>();
    database.scanGroup(
        Family.NAMES,
        Keys.number(directory),
        (key, value) -> {
          NameValue found = Values.name(value);
          if (found == null || found.importToken() != token) {
            FileName name = Keys.name(key);
            removed.add(
                found == null
                    ? new DirectoryEntry(0, name, 0, FileType.REGULAR)
                    : found.entry(name));
          }
          return true;
        });
    return removed;
  }

  private void removeName(Batch batch, DirectoryEntry entry) {
    batch.delete(Family.NAMES, Keys.name(directory, entry.name()));
    batch.delete(Family.ALIASES, Keys.alias(entry.inode(), directory, entry.name()));
  }

  /** Lets an inode that lost the name it goes by go by another, if it has one. */
  private void moveToOtherName(Batch batch, DirectoryEntry gone) {
    Inode inode = namespace.inode(gone.inode());
    if (inode == null || inode.parent() != directory || !inode.name().equals(gone.name())) {
      return;
    }
    database.scanGroup(
        Family.ALIASES,
        Keys.number(inode.number()),
        (key, value) -> {
          Inode moved =
              new Inode(
                  inode.number(),
                  inode.identity(),
                  Keys.second(key),
                  Keys.aliasName(key),
                  inode.checkedIn(),
                  inode.listing(),
                  inode.attributes());
          batch.put(Family.INODES, Keys.number(inode.number()), Values.inode(moved));
          return false;
        });
  }

  private void change(Consumer<Batch> changes) {
    inodeUpdates.lock();
    try {
      database.write(changes);
    } finally {
      inodeUpdates.unlock();
    }
  }

  static Inode withListing(Inode inode, @Nullable Listing listing, Attributes attributes) {
    return new Inode(
        inode.number(),
        inode.identity(),
        inode.parent(),
        inode.name(),
        inode.checkedIn(),
        listing,
        attributes);
  }

  private static Inode checked(Inode inode, int session) {
    return new Inode(
        inode.number(),
        inode.identity(),
        inode.parent(),
        inode.name(),
        session,
        inode.listing(),
        inode.attributes());
  }

  private void checkRunning() {
    if (finished) {
      throw new IllegalStateException("the import of directory " + directory + " is finished");
    }
  }
}
