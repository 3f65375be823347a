package io.pmfs.pack;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import java.util.Comparator;
import java.util.Set;
import org.apache.commons.compress.archivers.tar.TarConstants;
import org.jspecify.annotations.Nullable;

/** A directory of the source to pack. */
final class PlannedDirectory {
  /** A directory comes before its content, and its content before its next sibling. */
  static final Comparator<PlannedDirectory> BY_PATH = PlannedDirectory::compareTo;

  private static final FileName ROOT = FileName.of("./");
  private static final FileName NONE = FileName.of("");

  final @Nullable PlannedDirectory parent;
  final FileName path;
  final Attributes attributes;

  /** Whether nothing in it is packed, so that no file includes it as a parent. */
  boolean empty = true;

  /** Its index among all directories; set when they are sorted. */
  int rank;

  /** The number of the last shard that counted it; used while shards are planned. */
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

  /**
   * Adds this directory and its parents; stops at one that is already present, since its parents
   * are too.
   */
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
