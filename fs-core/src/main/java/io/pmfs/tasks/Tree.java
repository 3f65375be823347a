package io.pmfs.tasks;

import io.pmfs.fs.DirectoryReader;
import io.pmfs.fs.Importer;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** The dataset's names as a task sees them: all, or only those already known. */
final class Tree {
  private final Namespace namespace;
  private final Importer importer;
  private final @Nullable DirectoryReader reader;
  private final BooleanSupplier hurries;

  /**
   * The source's names, imported where needed.
   *
   * @param reader reads directories from the source; null to use only known names
   * @param hurries whether to ignore the reader's pace from now on
   */
  public Tree(
      Namespace namespace,
      Importer importer,
      @Nullable DirectoryReader reader,
      BooleanSupplier hurries) {
    this.namespace = namespace;
    this.importer = importer;
    this.reader = reader;
    this.hurries = hurries;
  }

  /** The inode of a path, without following symbolic links; 0 if its existence is unknown. */
  long find(FileName path) throws FsException {
    long at = Namespace.ROOT;
    for (String name : path.toLatin1().split("/", -1)) {
      if (!name.isEmpty()) {
        open(at);
        DirectoryEntry entry = namespace.find(at, FileName.ofLatin1(name));
        if (entry == null) {
          Inode directory = namespace.inode(at);
          if (reader == null && directory != null && directory.listing() == null) {
            return 0;
          }
          throw new FsException(Errno.ENOENT, path.toString());
        }
        at = identified(at, entry).inode();
      }
    }
    return at;
  }

  /** The entry; requests its attributes if the source could not deliver them when it was listed. */
  DirectoryEntry identified(long directory, DirectoryEntry entry) throws FsException {
    if (entry.type() != FileType.UNKNOWN || reader == null) {
      return entry;
    }
    DirectoryEntry now = importer.find(directory, entry.name());
    if (now == null) {
      throw new FsException(Errno.ENOENT, path(directory).resolve(entry.name()).toString());
    }
    return now;
  }

  /** Makes sure that a directory can be listed. */
  void open(long directory) throws FsException {
    if (reader != null) {
      importer.ensureListed(directory, reader, hurries);
      return;
    }
    Inode inode = namespace.inode(directory);
    if (inode != null && inode.attributes().type() != FileType.DIRECTORY) {
      throw new FsException(Errno.ENOTDIR, String.valueOf(namespace.path(directory)));
    }
  }

  /** At most {@code limit} entries after a position of a directory that was opened. */
  List<DirectoryEntry> list(long directory, long afterPosition, int limit) {
    List<DirectoryEntry> entries = new ArrayList<>();
    namespace.list(
        directory,
        afterPosition,
        entry -> {
          entries.add(entry);
          return entries.size() < limit;
        });
    return entries;
  }

  FileName path(long number) {
    FileName path = namespace.path(number);
    return path == null ? FileName.of("inode " + number) : path;
  }

  /** The inode as known now; null if it no longer exists. */
  @Nullable Inode inode(long number) {
    return namespace.inode(number);
  }
}
