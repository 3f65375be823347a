package io.pmfs.shards;

import io.pmfs.metadata.FileName;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Finds the file of each hard link: among the members with the target's name, the last one before
 * the link, because tar links to the file unpacked by then. That member may be a link too. Each
 * round looks up all links in one pass over the sorted members; the next round looks up those that
 * led to links.
 */
final class HardLinks implements AutoCloseable {
  private static final long SORT_BYTES = 8 << 20;

  /** The limit for chains of links; tar links every name to the first name of a file. */
  private static final int MAX_ROUNDS = 40;

  private final Path directory;
  private final String name;
  private final Warnings warnings;
  private final List<ExternalSort> opened = new ArrayList<>();
  private ExternalSort links;

  HardLinks(Path directory, String name, Warnings warnings) {
    this.directory = directory;
    this.name = name;
    this.warnings = warnings;
    this.links = sort("0");
  }

  private ExternalSort sort(String suffix) {
    ExternalSort sort = new ExternalSort(directory, name + suffix, SORT_BYTES);
    opened.add(sort);
    return sort;
  }

  /** Adds a link; many threads may add members. */
  void add(FileName path, ShardMember link) throws IOException {
    Name wanting = new Name(path, link.shard(), link.position());
    links.add(sortKey(link, 0), wanting.bytes());
  }

  /**
   * The key of a link: its target's name and its own position, so that it sorts right after the
   * members before it.
   */
  private static byte[] sortKey(ShardMember link, int round) {
    return SortKey.of(IndexFormat.memberKey(link.target()), link.shard(), link.position(), round);
  }

  /** The members, and replacements for those that are links or have links. */
  List<ExternalSort> resolve(ExternalSort members) throws IOException {
    List<ExternalSort> all = new ArrayList<>(List.of(members));
    for (int round = 1; round <= MAX_ROUNDS && !links.isEmpty(); round++) {
      ExternalSort found = sort("." + round + "f");
      ExternalSort next = sort("." + round + "n");
      lookUp(all, found, next, round);
      all.add(found);
      links = next;
    }
    try (ExternalSort.Sorted rest = ExternalSort.sorted(List.of(links))) {
      for (ExternalSort.Pair pair = rest.next(); pair != null; pair = rest.next()) {
        warnings.add(Warning.LOST_LINK, Name.of(pair.value()).path().toString());
      }
    }
    return all;
  }

  private void lookUp(List<ExternalSort> all, ExternalSort found, ExternalSort next, int round)
      throws IOException {
    try (ExternalSort.Sorted members = ExternalSort.sorted(all);
        ExternalSort.Sorted wanted = ExternalSort.sorted(List.of(links))) {
      ExternalSort.Pair member = members.next();
      ExternalSort.Pair last = null;
      for (ExternalSort.Pair link = wanted.next(); link != null; link = wanted.next()) {
        byte[] bound = SortKey.place(link.key());
        while (member != null && Arrays.compareUnsigned(SortKey.place(member.key()), bound) < 0) {
          last = member;
          member = members.next();
        }
        take(link, last, found, next, round);
      }
    }
  }

  private void take(
      ExternalSort.Pair link,
      ExternalSort.@Nullable Pair last,
      ExternalSort found,
      ExternalSort next,
      int round)
      throws IOException {
    Name wanting = Name.of(link.value());
    byte[] target = SortKey.memberKey(link.key());
    if (last == null || !Arrays.equals(SortKey.memberKey(last.key()), target)) {
      warnings.add(Warning.LOST_LINK, wanting.path().toString());
      return;
    }
    ShardMember member = IndexFormat.member(last.value());
    if (member.isDirectory()) {
      warnings.add(Warning.LOST_LINK, wanting.path().toString());
    } else if (member.isHardLink()) {
      next.add(sortKey(member, round), link.value());
    } else {
      byte[] file = IndexFormat.member(member.withLinks());
      found.add(wanting.sortKey(round), file);
      found.add(SortKey.in(last.key(), round), file);
    }
  }

  @Override
  public void close() throws IOException {
    for (ExternalSort sort : opened) {
      sort.close();
    }
  }

  /** A name and position at which a link refers to a file. */
  private record Name(FileName path, int shard, long position) {
    byte[] bytes() {
      return ByteBuffer.allocate(Integer.BYTES + Long.BYTES + path.size())
          .putInt(shard)
          .putLong(position)
          .put(path.bytes())
          .array();
    }

    static Name of(byte[] bytes) {
      ByteBuffer in = ByteBuffer.wrap(bytes);
      int shard = in.getInt();
      long position = in.getLong();
      byte[] path = new byte[in.remaining()];
      in.get(path);
      return new Name(FileName.of(path), shard, position);
    }

    byte[] sortKey(int round) {
      return SortKey.of(IndexFormat.memberKey(path), shard, position, round);
    }
  }
}
