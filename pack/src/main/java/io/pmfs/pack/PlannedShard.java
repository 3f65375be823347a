package io.pmfs.pack;

import com.google.common.hash.Hasher;
import com.google.common.hash.Hashing;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * The planned content of one shard.
 *
 * @param files in order; with all names of a hard-linked file
 * @param tarBytes its maximum size before compression
 */
record PlannedShard(int number, List<PlannedFile> files, long tarBytes) {
  /** The format that tar and WebDataset's brace expansion expect. */
  static final int DIGITS = 6;

  /** The name without the suffix of a compressed shard. */
  String name() {
    return String.format(Locale.ROOT, "shard-%0" + DIGITS + "d.tar", number);
  }

  /** The planned content; each shard counts the directories of its files. */
  PackManifest.Counts counts() {
    long[] counts = new long[FileType.SOCKET.number() + 1];
    Set<PlannedDirectory> directories = new HashSet<>();
    long hardLinks = 0;
    Set<Integer> links = new HashSet<>();
    for (PlannedFile file : files) {
      file.directory.addWithParentsTo(directories);
      if (file.link != 0 && !links.add(file.link)) {
        hardLinks++;
      } else if (!file.isPlace()) {
        counts[file.type().number()]++;
      }
    }
    return new PackManifest.Counts(
        counts[FileType.REGULAR.number()],
        directories.size(),
        counts[FileType.SYMBOLIC_LINK.number()],
        hardLinks,
        counts[FileType.FIFO.number()]
            + counts[FileType.CHARACTER_DEVICE.number()]
            + counts[FileType.BLOCK_DEVICE.number()]);
  }

  long contentBytes() {
    long bytes = 0;
    Set<Integer> links = new HashSet<>();
    for (PlannedFile file : files) {
      if (file.link == 0 || links.add(file.link)) {
        bytes += file.size;
      }
    }
    return bytes;
  }

  /**
   * A hash of the names in order and of all attributes: equal hashes mean that the same bytes will
   * be written.
   */
  String hash() {
    Hasher hasher = Hashing.sha256().newHasher();
    Set<PlannedDirectory> directories = new HashSet<>();
    Map<Integer, Integer> links = new HashMap<>();
    int index = 0;
    for (PlannedFile file : files) {
      for (PlannedDirectory d = file.directory; d != null && directories.add(d); d = d.parent) {
        put(hasher, d.path, Fingerprint.of(d.attributes));
      }
      put(hasher, file.path(), file.fingerprint);
      Integer first = file.link == 0 ? null : links.putIfAbsent(file.link, index);
      hasher.putInt(first == null ? -1 : first);
      index++;
    }
    return hasher.hash().toString();
  }

  private static void put(Hasher hasher, FileName path, long fingerprint) {
    hasher.putInt(path.size()).putBytes(path.bytes()).putLong(fingerprint);
  }
}
