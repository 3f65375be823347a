package io.pmfs.packing;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import java.util.Comparator;
import java.util.Set;
import org.apache.commons.compress.archivers.tar.TarConstants;
import org.jspecify.annotations.Nullable;

/** A directory of the source that is to be packed. */
final class PlannedDirectory {
  /** A directory comes before what is in it, and before its next sibling comes all of that. */
  static final Comparator<PlannedDirectory> BY_PATH = PlannedDirectory::compareTo;

  private static final FileName ROOT = FileName.of("./");
  private static final FileName NONE = FileName.of("");

  final @Nullable PlannedDirectory parent;
  final FileName path;
  final Attributes attributes;

  /** Whether nothing in it is packed, so that no file brings it along. */
  boolean empty = true;

  /** Its place among all directories; set when they are sorted. */
  int rank;

  /** The number of the last shard it was counted for, while shards are cut. */
  int shard = -1;

  PlannedDirectory(@Nullable PlannedDirectory parent, FileName path, Attributes attributes) {
    this.parent = parent;
    this.path = path;
    this.attributes = attributes;
  }

  TarMember member() {
    FileName name = parent == null ? ROOT : FileName.ofLatin1(path.toLatin1() + "/");
    return new TarMember(name, TarConstants.LF_DIR, NONE, attributes, 0);
  }

  /** Adds this and all above it, but for those that are there with all above them. */
  void addWithParentsTo(Set<PlannedDirectory> directories) {
    for (PlannedDirectory d = this; d != null && directories.add(d); ) {
      d = d.parent;
    }
  }

  private int compareTo(PlannedDirectory other) {
    byte[] a = path.bytes();
    byte[] b = other.path.bytes();
    for (int i = 0; i < Math.min(a.length, b.length); i++) {
      if (a[i] != b[i]) {
        return a[i] == '/' ? -1 : b[i] == '/' ? 1 : Byte.compareUnsigned(a[i], b[i]);
      }
    }
    return Integer.compare(a.length, b.length);
  }
}
