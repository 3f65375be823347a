package io.pmfs.pack;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Assigns files to shards. Depends only on the tree, the order and the shard size: not on the
 * machine, nor on the order in which a directory was listed.
 *
 * <p>Files that must stay together form a *unit*: the files of one sample, or all names of a
 * hard-linked file together with their samples. Units are sorted and never split.
 */
final class PackPlan {
  private final PlannedFile[] files;
  private final long shardBytes;
  private final List<PlannedShard> shards = new ArrayList<>();

  private PackPlan(PlannedFile[] files, long shardBytes) {
    this.files = files;
    this.shardBytes = shardBytes;
  }

  static List<PlannedShard> of(SourceTree tree, PackOrder order, long shardBytes) {
    PlannedDirectory[] directories = tree.directories().toArray(PlannedDirectory[]::new);
    Arrays.sort(directories, PlannedDirectory.BY_PATH);
    for (int i = 0; i < directories.length; i++) {
      directories[i].rank = i;
    }
    PlannedFile[] files = tree.files().toArray(PlannedFile[]::new);
    Arrays.sort(files, PlannedFile.BY_NAME);
    PackPlan plan = new PackPlan(files, shardBytes);
    int count = plan.formUnits(order.kind() != PackOrder.Kind.SIZE);
    if (tree.linkCount() > 0) {
      plan.joinLinked(count, tree.linkCount());
    }
    switch (order.kind()) {
      case NAME -> plan.sortByUnit();
      case SIZE -> plan.sortBySize(count);
      case SHUFFLE -> plan.shuffle(count, new Random(order.seed()));
    }
    plan.cut();
    return List.copyOf(plan.shards);
  }

  private int formUnits(boolean bySample) {
    int unit = -1;
    for (int i = 0; i < files.length; i++) {
      if (i == 0 || !bySample || !files[i].sharesSampleWith(files[i - 1])) {
        unit++;
      }
      files[i].unit = unit;
    }
    return unit + 1;
  }

  /** Merges units that share a hard-linked file into the first of them. */
  private void joinLinked(int unitCount, int linkCount) {
    int[] joined = new int[unitCount];
    Arrays.setAll(joined, i -> i);
    int[] unitOfLink = new int[linkCount + 1];
    Arrays.fill(unitOfLink, -1);
    for (PlannedFile file : files) {
      if (file.link != 0 && unitOfLink[file.link] < 0) {
        unitOfLink[file.link] = file.unit;
      } else if (file.link != 0) {
        int a = find(joined, file.unit);
        int b = find(joined, unitOfLink[file.link]);
        joined[Math.max(a, b)] = Math.min(a, b);
      }
    }
    for (PlannedFile file : files) {
      file.unit = find(joined, file.unit);
    }
  }

  private static int find(int[] joined, int unit) {
    int root = unit;
    while (joined[root] != root) {
      joined[root] = joined[joined[root]];
      root = joined[root];
    }
    return root;
  }

  /** Stable: files within a unit stay in the order of their names. */
  private void sortByUnit() {
    Arrays.sort(files, Comparator.comparingInt(file -> file.unit));
  }

  private void sortBySize(int unitCount) {
    long[] bytes = new long[unitCount];
    for (PlannedFile file : files) {
      bytes[file.unit] = file.link == 0 ? bytes[file.unit] + file.size : file.size;
    }
    Arrays.sort(
        files,
        Comparator.<PlannedFile>comparingLong(file -> bytes[file.unit])
            .thenComparingInt(file -> file.unit));
  }

  /** The Fisher-Yates shuffle, with the numbers that java.util.Random specifies. */
  private void shuffle(int unitCount, Random random) {
    int[] place = new int[unitCount];
    Arrays.setAll(place, i -> i);
    for (int i = unitCount - 1; i > 0; i--) {
      int j = random.nextInt(i + 1);
      int other = place[i];
      place[i] = place[j];
      place[j] = other;
    }
    for (PlannedFile file : files) {
      file.unit = place[file.unit];
    }
    sortByUnit();
  }

  private void cut() {
    int start = 0;
    long bytes = TarMember.END_BYTES;
    for (int from = 0; from < files.length; ) {
      int to = from + 1;
      while (to < files.length && files[to].unit == files[from].unit) {
        to++;
      }
      long more = bytesOf(from, to);
      if (from > start && bytes + more > shardBytes) {
        add(start, from, bytes);
        start = from;
        bytes = TarMember.END_BYTES;
        more = bytesOf(from, to); // with all its directories
      }
      bytes += more;
      from = to;
    }
    add(start, files.length, bytes);
  }

  private void add(int from, int to, long bytes) {
    shards.add(new PlannedShard(shards.size(), Arrays.asList(files).subList(from, to), bytes));
  }

  /** The bytes that a unit adds to the current shard. */
  private long bytesOf(int from, int to) {
    long bytes = 0;
    Map<Integer, PlannedFile> firsts = new HashMap<>();
    for (PlannedFile file : Arrays.asList(files).subList(from, to)) {
      for (PlannedDirectory d = file.directory;
          d != null && d.shard != shards.size();
          d = d.parent) {
        d.shard = shards.size();
        bytes += d.member().headerBytes();
      }
      PlannedFile first = file.link == 0 ? null : firsts.putIfAbsent(file.link, file);
      bytes += file.isPlace() ? 0 : first == null ? file.tarBytes() : file.linkBytes(first);
    }
    return bytes;
  }
}
