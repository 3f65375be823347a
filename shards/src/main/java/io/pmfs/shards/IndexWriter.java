package io.pmfs.shards;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.table.SortedTable;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Writes an index. Many threads add members in any order. Then one pass handles them in the order
 * of their paths, a directory before its content: the last member with a name wins, and missing
 * directories are added.
 */
final class IndexWriter implements AutoCloseable {
  private static final long SORT_BYTES = 16 << 20;
  private static final int DIRECTORY = 040000;
  private static final int PERMISSIONS = 07777;
  private static final int MADE_PERMISSIONS = 0755;

  /** The position of directories that are not members: a shard's own directory, and added ones. */
  static final long NO_POSITION = -1;

  private final IndexForm form;
  private final List<Shard> shards;
  private final Path index;
  private final Path unfinished;
  private final Warnings warnings = new Warnings();
  private final ExternalSort members;
  private final ExternalSort order;
  private final HardLinks links;
  private long written;

  IndexWriter(IndexForm form, List<Shard> shards, BackingStore store, Path index)
      throws FsException, IOException {
    this.form = form;
    this.shards = shards;
    this.index = index;
    Path directory = Objects.requireNonNull(index.toAbsolutePath().getParent());
    String name = index.getFileName() + ".partial";
    this.unfinished = index.resolveSibling(name);
    removeLeft(directory, name);
    this.members = new ExternalSort(directory, name + ".members", SORT_BYTES);
    this.order = new ExternalSort(directory, name + ".order", SORT_BYTES);
    this.links = new HardLinks(directory, name + ".links", warnings);
    if (!form.merged() || shards.isEmpty()) {
      Attributes root = store.status(FileName.of("")).attributes();
      put(
          FileName.of(""),
          directory(root.mode() & PERMISSIONS, Shard.of(0, FileName.of(""), root)));
    } else {
      put(FileName.of(""), directory(MADE_PERMISSIONS, shards.get(0)));
    }
  }

  /** Removes the files of a killed process that was building this index. */
  private static void removeLeft(Path directory, String name) throws IOException {
    try (DirectoryStream<Path> left =
        Files.newDirectoryStream(
            directory, path -> String.valueOf(path.getFileName()).startsWith(name))) {
      for (Path file : left) {
        Files.delete(file);
      }
    }
  }

  /** Returns the directory in which the members of a shard are shown. */
  FileName begin(Shard shard) throws ShardException {
    if (form.merged()) {
      return FileName.of("");
    }
    FileName directory = ShardName.directory(shard.name());
    member(directory, directory(MADE_PERMISSIONS, shard));
    return directory;
  }

  void member(FileName path, ShardMember member) throws ShardException {
    try {
      put(path, member);
    } catch (IOException e) {
      throw new ShardException(
          index + ": the index of the shards cannot be written: " + e.getMessage(), e);
    }
  }

  private void put(FileName path, ShardMember member) throws IOException {
    byte[] key = IndexFormat.memberKey(path);
    members.add(SortKey.of(key, member.shard(), member.position(), 0), IndexFormat.member(member));
    if (member.isHardLink()) {
      links.add(path, member);
    }
  }

  void warn(Warning warning, String where) {
    warnings.add(warning, where);
  }

  /** Sorts and writes all members, and moves the index to its final path. */
  IndexSummary finish() throws IOException {
    IndexSummary summary;
    try (SortedTable.Writer table = new SortedTable.Writer(unfinished)) {
      for (Shard shard : shards) {
        table.put(IndexFormat.shardKey(shard.number()), IndexFormat.shard(shard));
      }
      List<ExternalSort> all = links.resolve(members);
      writeMembers(table, all);
      writeOrder(table);
      summary = new IndexSummary(form, shards.size(), written, warnings.count());
      table.put(IndexFormat.SUMMARY_KEY, IndexFormat.summary(summary));
      table.finish();
    }
    Files.move(
        unfinished, index, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    warnings.report();
    return summary;
  }

  /** Of members with the same name the last one wins; a link without a target is left out. */
  private void writeMembers(SortedTable.Writer table, List<ExternalSort> sorts) throws IOException {
    Tree tree = new Tree(table);
    try (ExternalSort.Sorted pairs = ExternalSort.sorted(sorts)) {
      byte[] key = new byte[0];
      ShardMember last = null;
      for (ExternalSort.Pair pair = pairs.next(); pair != null; pair = pairs.next()) {
        byte[] next = SortKey.memberKey(pair.key());
        if (last != null && !Arrays.equals(key, next)) {
          tree.add(key, last);
          last = null;
        }
        key = next;
        ShardMember member = IndexFormat.member(pair.value());
        if (!member.isHardLink()) {
          last = member;
        }
      }
      if (last != null) {
        tree.add(key, last);
      }
    }
  }

  private void writeOrder(SortedTable.Writer table) throws IOException {
    try (ExternalSort.Sorted pairs = ExternalSort.sorted(List.of(order))) {
      for (ExternalSort.Pair pair = pairs.next(); pair != null; pair = pairs.next()) {
        table.put(pair.key(), pair.value());
      }
    }
  }

  private static ShardMember directory(int permissions, Shard shard) {
    return new ShardMember(
        DIRECTORY | permissions,
        shard.uid(),
        shard.gid(),
        0,
        0,
        shard.modificationTime(),
        shard.number(),
        NO_POSITION,
        0,
        false,
        ShardMember.NO_TARGET,
        Extents.whole(0));
  }

  @Override
  public void close() throws IOException {
    members.close();
    order.close();
    links.close();
    Files.deleteIfExists(unfinished);
  }

  /** The state of the pass over the tree. */
  private final class Tree {
    private final SortedTable.Writer table;

    /** The key of the last directory, which is also the prefix of the keys below it. */
    private byte[] directory = {IndexFormat.MEMBER};

    /** The last name that is not a directory: nothing can be below it. */
    private byte @Nullable [] leaf;

    Tree(SortedTable.Writer table) {
      this.table = table;
    }

    void add(byte[] key, ShardMember member) throws IOException {
      byte[] blocked = leaf;
      if (blocked != null && isBelow(key, blocked)) {
        warnings.add(Warning.BELOW_FILE, IndexFormat.path(key).toString());
        return;
      }
      makeParents(key, member);
      write(key, member);
      if (member.isDirectory()) {
        directory = key;
        leaf = null;
      } else {
        leaf = key;
        order.add(
            IndexFormat.orderKey(member.shard(), member.position(), key),
            IndexFormat.order(FileType.ofMode(member.mode())));
      }
    }

    /** Directories come before their content, so a parent that is not written yet is missing. */
    private void makeParents(byte[] key, ShardMember member) throws IOException {
      int common = Arrays.mismatch(key, directory);
      int end = common < 0 ? key.length : common;
      for (int i = 2; i < key.length; i++) {
        boolean written = i < end || (i == end && i == directory.length);
        if (key[i] == 0 && !written) {
          byte[] parent = Arrays.copyOf(key, i);
          write(parent, directory(MADE_PERMISSIONS, shards.get(member.shard())));
          directory = parent;
        }
      }
    }

    private void write(byte[] key, ShardMember member) throws IOException {
      table.put(key, IndexFormat.member(member));
      written++;
    }
  }

  private static boolean isBelow(byte[] key, byte[] directory) {
    return key.length > directory.length
        && key[directory.length] == 0
        && Arrays.equals(key, 0, directory.length, directory, 0, directory.length);
  }
}
