package io.pmfs.metadata;

import io.pmfs.metadata.Values.NameValue;
import io.pmfs.table.Family;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Determines the inode of each entry of a batch: that of the name before, that of another name of
 * the same file, or a new one. The caller holds the lock on inode updates until the result is
 * written.
 */
final class Resolution {
  private final Database database;
  private final long directory;
  private final @Nullable Lost lost;
  private final List<SourceEntry> entries;
  private final @Nullable NameValue[] names;
  private final @Nullable Inode[] kept;
  private final long[] numbers;
  private final Map<FileIdentity, Link> links = new HashMap<>();
  private final Map<Long, Inode> previous = new LinkedHashMap<>();
  private int renumbered;

  /** A file of the batch: its number and attributes. */
  private record Link(long number, Attributes file) {}

  /** Knows the numbers of names that the database has lost. */
  interface Lost {
    /** The entry's former number; null if it had none. */
    @Nullable Long number(SourceEntry entry);
  }

  Resolution(
      Database database,
      long directory,
      List<SourceEntry> entries,
      boolean fresh,
      @Nullable Lost lost) {
    this.database = database;
    this.lost = lost;
    this.directory = directory;
    this.entries = entries;
    this.names = new NameValue[entries.size()];
    this.kept = new Inode[entries.size()];
    this.numbers = new long[entries.size()];
    if (!fresh) {
      readNames();
      readKept();
    }
  }

  private void readNames() {
    List<byte[]> keys = new ArrayList<>(entries.size());
    for (SourceEntry entry : entries) {
      keys.add(Keys.name(directory, entry.name()));
    }
    List<byte @Nullable []> values = database.get(Family.NAMES, keys);
    for (int i = 0; i < names.length; i++) {
      byte[] value = values.get(i);
      names[i] = value == null ? null : Values.name(value);
    }
  }

  /**
   * Finds the inodes of names that stand for the same source file as before; a damaged inode is
   * replaced.
   */
  private void readKept() {
    List<Integer> places = new ArrayList<>();
    List<byte[]> keys = new ArrayList<>();
    for (int i = 0; i < names.length; i++) {
      NameValue name = names[i];
      SourceEntry entry = entries.get(i);
      if (name != null && (entry.isUnknown() || name.type() == entry.attributes().type())) {
        places.add(i);
        keys.add(Keys.number(name.inode()));
      }
    }
    List<byte @Nullable []> values = database.get(Family.INODES, keys);
    for (int k = 0; k < keys.size(); k++) {
      int i = places.get(k);
      kept[i] = sameFile(Keys.first(keys.get(k)), values.get(k), entries.get(i));
    }
  }

  private @Nullable Inode sameFile(long number, byte @Nullable [] value, SourceEntry entry) {
    Inode inode = value == null ? null : Values.inode(number, value);
    if (inode != null && entry.isUnknown()) {
      return inode;
    }
    if (inode == null || !inode.continuesAs(entry.identity(), entry.attributes())) {
      return null;
    }
    renumbered += inode.isRenumbered(entry.identity(), entry.attributes()) ? 1 : 0;
    return inode;
  }

  /** Handles names that keep their inode first, so that new names of the same files find these. */
  void resolve(InodeNumbers source) {
    for (int i = 0; i < numbers.length; i++) {
      Inode inode = kept[i];
      if (inode != null) {
        Long linked = linked(entries.get(i));
        numbers[i] = linked == null ? keep(inode) : linked;
        remember(i);
      }
    }
    for (int i = 0; i < numbers.length; i++) {
      if (kept[i] == null) {
        Long linked = linked(entries.get(i));
        numbers[i] = linked == null ? taken(i, source) : linked;
        remember(i);
      }
    }
  }

  private long taken(int i, InodeNumbers source) {
    Lost before = lost;
    Long number = before == null || names[i] != null ? null : before.number(entries.get(i));
    // A number that now belongs to another file stays with that file.
    return number == null || database.get(Family.INODES, Keys.number(number)) != null
        ? source.take()
        : number;
  }

  private long keep(Inode inode) {
    previous.put(inode.number(), inode);
    return inode.number();
  }

  /**
   * The known number of a file with several hard links. Size and times must match, too, because
   * another file may have its number at the source by now.
   */
  private @Nullable Long linked(SourceEntry entry) {
    if (!entry.mayHaveOtherNames()) {
      return null;
    }
    Link inBatch = links.get(entry.identity());
    if (inBatch != null) {
      return inBatch.file.areUntouched(entry.attributes()) ? (Long) inBatch.number : null;
    }
    byte[] value = database.get(Family.LINKS, Keys.link(entry.identity()));
    Long number = value == null ? null : Values.number(value);
    if (number == null) {
      return null;
    }
    byte[] known = database.get(Family.INODES, Keys.number(number));
    Inode inode = known == null ? null : Values.inode(number, known);
    return inode != null
            && inode.identity().inode() == entry.identity().inode()
            && inode.attributes().areUntouched(entry.attributes())
        ? (Long) keep(inode)
        : null;
  }

  private void remember(int i) {
    SourceEntry entry = entries.get(i);
    if (entry.mayHaveOtherNames()) {
      links.put(entry.identity(), new Link(numbers[i], entry.attributes()));
    }
  }

  long number(int i) {
    return numbers[i];
  }

  /** The inode that had this number before this batch. */
  @Nullable Inode previous(int i) {
    return previous.get(numbers[i]);
  }

  /** The inode that a name stood for if it now stands for another one; else 0. */
  long replaced(int i) {
    NameValue name = names[i];
    return name == null || name.inode() == numbers[i] ? 0 : name.inode();
  }

  /** How many files have another number at the source than before, but are otherwise the same. */
  int renumbered() {
    return renumbered;
  }

  List<Inode> previousInodes() {
    return List.copyOf(previous.values());
  }
}
