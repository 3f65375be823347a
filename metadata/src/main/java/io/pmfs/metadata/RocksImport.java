package io.pmfs.metadata;

import io.pmfs.metadata.Values.NameValue;
import io.pmfs.table.Batch;
import io.pmfs.table.Family;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
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
    boolean[] isLost = {false};
    database.write(
        batch -> {
          for (int i = 0; i < entries.size(); i++) {
            inodes.add(put(batch, entries.get(i), resolution.number(i), resolution.previous(i)));
            long former = resolution.replaced(i);
            if (former != 0) {
              loseName(batch, former, directory, entries.get(i).name());
              isLost[0] = true;
            }
          }
        });
    if (isLost[0]) {
      namespace.noteLostNames();
    }
    inodes.forEach(inode -> namespace.keep(recent, inode));
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
  }

  @Override
  public void finish(Attributes attributes, Listing listing) {
    checkRunning();
    namespace.locked(
        () -> {
          checkNotLost();
          finishNow(attributes, listing);
          return true;
        });
    finished = true;
  }

  private void finishNow(Attributes attributes, Listing listing) {
    if (!fresh) {
      removeNames(namespace, directory, name -> name.importToken() != token);
    }
    Inode inode = namespace.inode(directory);
    if (inode == null) {
      throw new NamespaceLostException("directory " + directory + " was removed");
    }
    namespace.markListed(directory);
    namespace.storeInode(
        inode.withListing(listing).with(attributes).withSession(namespace.session()));
  }

  /** Removes the matching names of a directory, some at a time. */
  static void removeNames(
      RocksNamespace namespace, long directory, Predicate<NameValue> isRemoved) {
    Database database = namespace.database();
    byte[][] from = {Keys.number(directory)};
    List<DirectoryEntry> some = new ArrayList<>();
    do {
      some.clear();
      database.scanGroup(
          Family.NAMES,
          from[0],
          (key, value) -> {
            from[0] = key;
            NameValue found = Values.name(value);
            if (found == null) {
              database.delete(Family.NAMES, key);
            } else if (isRemoved.test(found)) {
              some.add(found.entry(Keys.name(key)));
            }
            return some.size() < BATCH_ENTRIES;
          });
      database.write(
          batch -> {
            for (DirectoryEntry entry : some) {
              batch.delete(Family.NAMES, Keys.name(directory, entry.name()));
              loseName(batch, entry.inode(), directory, entry.name());
            }
          });
      if (!some.isEmpty()) {
        namespace.noteLostNames();
      }
    } while (some.size() == BATCH_ENTRIES);
  }

  /** Adds to a batch what follows when a name no longer stands for an inode. */
  private static void loseName(Batch batch, long number, long directory, FileName name) {
    batch.delete(Family.ALIASES, Keys.alias(number, directory, name));
    batch.put(Family.DEFAULT, Keys.lostName(number), Values.bytes(new byte[0]));
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
