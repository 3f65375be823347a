package io.pmfs.fs;

import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Listing;
import io.pmfs.metadata.Namespace;
import io.pmfs.stage.copies.Copies;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/** Removes metadata and copies of files that changed or are gone. */
final class Forgetting {
  private final Namespace namespace;
  private final Copies copies;

  Forgetting(Namespace namespace, Copies copies) {
    this.namespace = namespace;
    this.copies = copies;
  }

  /** Drops copies that a change of the file has made obsolete. */
  void dropOutdated(Inode before, Inode now) {
    boolean regular = now.attributes().type() == FileType.REGULAR;
    if (regular
        && !(before.attributes().version().equals(now.attributes().version())
            && before.isFile(now.identity(), now.attributes()))) {
      copies.drop(now.number());
    }
  }

  /** Removes an inode whose last name is gone, its copies, and for a directory everything below. */
  void remove(long directory, DirectoryEntry gone) {
    Deque<GoneName> rest = new ArrayDeque<>(List.of(new GoneName(directory, gone)));
    while (!rest.isEmpty()) {
      GoneName name = rest.pop();
      long number = name.entry.inode();
      Inode inode = namespace.inode(number);
      if (inode == null
          || inode.parent() != name.directory
          || !inode.name().equals(name.entry.name())) {
        // It has another name.
        continue;
      }
      if (inode.attributes().type() == FileType.DIRECTORY) {
        Listing empty = new Listing(namespace.session(), Instant.EPOCH);
        for (DirectoryEntry child :
            namespace.beginImport(number).finish(inode.attributes(), empty)) {
          rest.push(new GoneName(number, child));
        }
      } else {
        copies.drop(number);
      }
      namespace.removeInode(number);
    }
  }

  private record GoneName(long directory, DirectoryEntry entry) {}
}
