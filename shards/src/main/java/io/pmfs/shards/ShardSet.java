package io.pmfs.shards;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** The shards of a source in the order of their names, and how they are shown. */
public final class ShardSet {
  /** The last file that {@code pmfs pack} writes. */
  public static final FileName MANIFEST = FileName.of("pmfs-pack.json");

  /** Marks a directory that {@code pmfs pack} has not finished. */
  public static final FileName UNFINISHED = FileName.of("pmfs-pack.partial");

  /** The index beside packed shards. */
  public static final FileName INDEX = FileName.of("pmfs-index.sst");

  private final List<Shard> shards;
  private final IndexForm form;
  private final boolean packed;

  private ShardSet(List<Shard> shards, IndexForm form, boolean packed) {
    this.shards = shards;
    this.form = form;
    this.packed = packed;
  }

  /** One tar file of a store, under any name; its members are shown at the root. */
  public static ShardSet ofFile(BackingStore store, FileName name, boolean nested)
      throws FsException, ShardException {
    requireAnyPlace(name);
    return new ShardSet(shards(store, List.of(name)), new IndexForm(true, nested), false);
  }

  /** Whether {@code pmfs pack} wrote the root of a store. */
  public static boolean isPacked(BackingStore store) throws FsException, ShardException {
    if (has(store, MANIFEST)) {
      return true;
    }
    if (has(store, UNFINISHED)) {
      throw new ShardException(
          "pmfs pack has not finished here; run it again, or mount with --source-form"
              + " directory");
    }
    return false;
  }

  /**
   * The number of tar files in the root of a store, by their names; 0 if anything else is there.
   * Stops listing at the first other name, because each node of a job lists the root.
   */
  public static int countIfAlone(BackingStore store) throws FsException {
    AtomicInteger count = new AtomicInteger();
    AtomicBoolean others = new AtomicBoolean();
    store.list(
        FileName.of(""),
        batch -> {
          for (FileName name : batch) {
            if (!isAside(name)) {
              count.incrementAndGet();
              if (!ShardName.isShard(name)) {
                others.set(true);
              }
            }
          }
          return !others.get();
        });
    return others.get() ? 0 : count.get();
  }

  /**
   * The tar files in the root of a store, whatever else is there. Members of shards from {@code
   * pmfs pack} are shown together at the root; any other tar file is shown as a directory.
   */
  public static ShardSet ofDirectory(BackingStore store, boolean nested)
      throws FsException, ShardException {
    boolean packed = isPacked(store);
    Set<FileName> names = names(store);
    if (!packed) {
      for (FileName name : names) {
        requireAnyPlace(name);
      }
    }
    names.removeIf(name -> !ShardName.isShard(name));
    List<Shard> shards = shards(store, names);
    if (!packed) {
      if (shards.isEmpty()) {
        throw new ShardException("there is no tar file here; mount with --source-form directory");
      }
      requireDifferent(shards);
    }
    return new ShardSet(shards, new IndexForm(packed, nested), packed);
  }

  private static Set<FileName> names(BackingStore store) throws FsException {
    Set<FileName> names = new TreeSet<>();
    store.list(
        FileName.of(""),
        batch -> {
          for (FileName name : batch) {
            if (!isAside(name)) {
              names.add(name);
            }
          }
          return true;
        });
    return names;
  }

  private static boolean has(BackingStore store, FileName name) throws FsException {
    try {
      store.status(name);
      return true;
    } catch (FsException e) {
      if (e.errno() == Errno.ENOENT) {
        return false;
      }
      throw e;
    }
  }

  private static boolean isAside(FileName name) {
    return name.bytes()[0] == '.' || name.equals(MANIFEST) || name.equals(INDEX);
  }

  private static void requireAnyPlace(FileName name) throws ShardException {
    if (ShardName.isStream(name)) {
      throw new ShardException(
          name
              + ": can only be read from its beginning; unpack it, or pack its content with pmfs"
              + " pack");
    }
  }

  private static List<Shard> shards(BackingStore store, Iterable<FileName> names)
      throws FsException {
    List<Shard> shards = new ArrayList<>();
    for (FileName name : names) {
      Attributes attributes = store.status(name).attributes();
      if (attributes.type() == FileType.REGULAR) {
        shards.add(Shard.of(shards.size(), name, attributes));
      }
    }
    return List.copyOf(shards);
  }

  private static void requireDifferent(List<Shard> shards) throws ShardException {
    Set<FileName> directories = new HashSet<>();
    for (Shard shard : shards) {
      FileName directory = ShardName.directory(shard.name());
      if (!directories.add(directory)) {
        throw new ShardException(
            shard.name() + ": another tar file is also shown as " + directory + "; move one away");
      }
    }
  }

  List<Shard> shards() {
    return shards;
  }

  public IndexForm form() {
    return form;
  }

  public int count() {
    return shards.size();
  }

  /** Whether {@code pmfs pack} wrote them, so that there is an index beside them. */
  public boolean isPacked() {
    return packed;
  }

  /** Whether an index describes these shards in their current versions, in this form. */
  public boolean isIndexedBy(ShardIndex index) {
    if (!index.summary().form().equals(form) || index.shards().size() != shards.size()) {
      return false;
    }
    for (Shard shard : shards) {
      if (!shard.isSameVersion(index.shards().get(shard.number()))) {
        return false;
      }
    }
    return true;
  }
}
