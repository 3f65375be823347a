package io.pmfs.metadata;

import io.pmfs.metadata.Values.NameValue;
import io.pmfs.table.Batch;
import io.pmfs.table.Family;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One import of a directory. Each name written carries the import's token; names of the directory
 * with another token at the end were not added.
 */
final class RocksImport implements Namespace.DirectoryImport {
  /** Entries written or removed in one batch. */
  static final int BATCH_ENTRIES = 1024;

  private final RocksNamespace namespace;
  private final Database database;
  private final long directory;
  private final long token;
  private final boolean fresh;
  private final int losses;
  private long position;
  private @Nullable Map<Long, Long> seenBefore;
  private boolean finished;

  /**
   * Starts at position 1.
   *
   * @param fresh whether the directory has no names yet, so that none need to be looked up
   */
  RocksImport(RocksNamespace namespace, long directory, long token, boolean fresh) {
    this.namespace = namespace;
    this.database = namespace.database();
    this.losses = database.losses();
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
    boolean linked = entries.stream().anyMatch(SourceEntry::mayHaveOtherNames);
    long before = position;
    if (fresh && !linked && losses == 0) {
      // New names of new inodes: reads nothing that another import could write.
      database.within(
          () -> {
            checkNotLost();
            position = before;
            RecentInodes recent = namespace.recent();
            List<Inode> inodes = new ArrayList<>(entries.size());
            database.write(
                batch -> {
                  for (SourceEntry entry : entries) {
                    inodes.add(put(batch, entry, namespace.numbers().take(), null));
                  }
                });
            inodes.forEach(inode -> namespace.keep(recent, inode));
            return true;
          });
      return;
    }
    previous.addAll(
        namespace.locked(
            () -> {
              checkNotLost();
              position = before;
              return addResolved(entries);
            }));
  }

  private List<Inode> addResolved(List<SourceEntry> entries) {
    RecentInodes recent = namespace.recent();
    Resolution resolution =
        new Resolution(database, directory, entries, fresh, losses == 0 ? null : lost());
    resolution.resolve(namespace.numbers());
    namespace.noteRenumbered(resolution.renumbered());
    List<Inode> inodes = new ArrayList<>(entries.size());
    database.write(
        batch -> {
          for (int i = 0; i < entries.size(); i++) {
            inodes.add(put(batch, entries.get(i), resolution.number(i), resolution.previous(i)));
            DirectoryEntry former = resolution.replaced(i);
            if (former != null) {
              batch.delete(Family.ALIASES, Keys.alias(former.inode(), directory, former.name()));
            }
          }
        });
    inodes.forEach(inode -> namespace.keep(recent, inode));
    for (int i = 0; i < entries.size(); i++) {
      DirectoryEntry former = resolution.replaced(i);
      if (former != null) {
        namespace.replacedIn(directory).add(former);
      }
    }
    return resolution.previousInodes();
  }

  /** The numbers that a directory's names had before the state was lost. */
  private Resolution.Lost lost() {
    Map<Long, Long> seen = seenBefore;
    if (seen == null) {
      seen = namespace.lineage().numbersIn(directory);
      seenBefore = seen;
    }
    Map<Long, Long> numbers = seen;
    return entry ->
        numbers.remove(
            namespace.lineage().hashes(entry.name(), entry.identity(), entry.attributes()));
  }

  private void checkNotLost() {
    if (database.losses() != losses) {
      throw new NamespaceLostException("importing directory " + directory);
    }
  }

  private Inode put(Batch batch, SourceEntry entry, long number, @Nullable Inode before) {
    FileName name = entry.name();
    position++;
    if (entry.isUnknown() && before != null) {
      // Known data is compared once the source describes the file again.
      putName(batch, name, number, before.attributes().type());
      return before;
    }
    Attributes attributes = entry.attributes();
    Inode inode =
        new Inode(
            number,
            entry.identity(),
            directory,
            name,
            entry.isVerified() ? namespace.session() : Inode.NEVER,
            before != null && before.isFile(entry.identity(), attributes) ? before.listing() : null,
            attributes);
    batch.put(Family.INODES, Keys.number(number), Values.inode(inode));
    FileName list = entry.accessList();
    if (list != null) {
      namespace.attributes().putAccessList(batch, number, attributes.changeTime(), list);
    }
    putName(batch, name, number, attributes.type());
    if (entry.mayHaveOtherNames()) {
      batch.put(Family.LINKS, Keys.link(entry.identity()), Values.number(number));
      batch.put(Family.ALIASES, Keys.alias(number, directory, name), Values.bytes(new byte[0]));
    }
    return inode;
  }

  private void putName(Batch batch, FileName name, long number, FileType type) {
    batch.put(
        Family.NAMES,
        Keys.name(directory, name),
        Values.name(new NameValue(number, type, position, token)));
    batch.put(
        Family.LISTING, Keys.position(directory, position), Values.listed(number, type, name));
  }

  /** Replaces an entry that was unknown when its directory was imported. */
  static void identify(RocksNamespace namespace, long directory, SourceEntry entry) {
    byte[] value = namespace.database().get(Family.NAMES, Keys.name(directory, entry.name()));
    NameValue name = value == null ? null : Values.name(value);
    if (name == null || name.type() != FileType.UNKNOWN) {
      return;
    }
    RocksImport one = new RocksImport(namespace, directory, name.importToken(), false);
    one.position = name.position() - 1;
    one.addResolved(List.of(entry));
    namespace.replacedIn(directory).remove(name.entry(entry.name()));
    namespace.removeInode(name.inode());
  }

  @Override
  public List<DirectoryEntry> finish(Attributes attributes, Listing listing) {
    checkRunning();
    List<DirectoryEntry> removed =
        namespace.locked(
            () -> {
              checkNotLost();
              return finishNow(attributes, listing);
            });
    finished = true;
    return removed;
  }

  private List<DirectoryEntry> finishNow(Attributes attributes, Listing listing) {
    List<DirectoryEntry> removed = fresh ? new ArrayList<>() : notAdded();
    removeNames(removed);
    removed.addAll(namespace.replacedIn(directory));
    removed.forEach(this::moveToOtherName);
    Inode inode = namespace.inode(directory);
    if (inode == null) {
      throw new NamespaceLostException("directory " + directory + " was removed");
    }
    namespace.markListed(directory);
    namespace.storeInode(
        inode.withListing(listing).with(attributes).withSession(namespace.session()));
    namespace.forgetReplacedIn(directory);
    return removed;
  }

  private List<DirectoryEntry> notAdded() {
    List<DirectoryEntry> gone = new ArrayList<>();
    database.scanGroup(
        Family.NAMES,
        Keys.number(directory),
        (key, value) -> {
          NameValue found = Values.name(value);
          if (found == null) {
            database.delete(Family.NAMES, key);
          } else if (found.importToken() != token) {
            gone.add(found.entry(Keys.name(key)));
          }
          return true;
        });
    return gone;
  }

  private void removeNames(List<DirectoryEntry> gone) {
    for (int from = 0; from < gone.size(); from += BATCH_ENTRIES) {
      List<DirectoryEntry> some = gone.subList(from, Math.min(gone.size(), from + BATCH_ENTRIES));
      database.write(
          batch -> {
            for (DirectoryEntry entry : some) {
              batch.delete(Family.NAMES, Keys.name(directory, entry.name()));
              batch.delete(Family.ALIASES, Keys.alias(entry.inode(), directory, entry.name()));
            }
          });
    }
  }

  /** Gives an inode that lost its recorded name another of its names, if there is one. */
  private void moveToOtherName(DirectoryEntry gone) {
    byte[] value = database.get(Family.INODES, Keys.number(gone.inode()));
    Inode inode = value == null ? null : Values.inode(gone.inode(), value);
    if (inode == null || inode.parent() != directory || !inode.name().equals(gone.name())) {
      return;
    }
    database.scanGroup(
        Family.ALIASES,
        Keys.number(inode.number()),
        (key, ignored) -> {
          Inode moved = inode.withName(Keys.second(key), Keys.aliasName(key));
          namespace.storeInode(moved);
          return false;
        });
  }

  /**
   * The same file under another number. A directory gets no {@link Listing}, because its names are
   * unknown under that number.
   */
  static Inode numbered(Inode inode, long number, long parent, FileName name) {
    return new Inode(
        number, inode.identity(), parent, name, inode.checkedIn(), null, inode.attributes());
  }

  private void checkRunning() {
    if (finished) {
      throw new IllegalStateException("the import of directory " + directory + " is finished");
    }
  }
}
