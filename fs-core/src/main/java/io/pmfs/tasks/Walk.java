package io.pmfs.tasks;

import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.posix.FsException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** A depth-first walk below a directory, in the order of its listings. */
final class Walk {
  private static final int ENTRIES_AT_ONCE = 256;

  private final Tree tree;
  private final Visitor visitor;
  private final BooleanSupplier stopped;
  private final Deque<OpenDirectory> open = new ArrayDeque<>();

  Walk(Tree tree, Visitor visitor, BooleanSupplier stopped) {
    this.tree = tree;
    this.visitor = visitor;
    this.stopped = stopped;
  }

  /** Receives what the walk finds. */
  interface Visitor {
    /** Whether the walk enters a directory. */
    boolean enters(long directory);

    /** Called when the walk enters a directory, or returns to it from one below. */
    default void isIn(long directory) {}

    void file(long number);

    default void symbolicLink(long number) {}

    /**
     * Reports a directory that cannot be listed, or a name whose attributes the source cannot
     * deliver.
     */
    default void failed(long number, FsException e) {}
  }

  private static final class OpenDirectory {
    private final long number;
    private long position;
    private Iterator<DirectoryEntry> entries = List.<DirectoryEntry>of().iterator();

    OpenDirectory(long number) {
      this.number = number;
    }
  }

  /** Walks below a directory without asking the visitor whether to enter it. */
  void below(long directory) {
    open(directory);
    while (!open.isEmpty() && !stopped.getAsBoolean()) {
      OpenDirectory in = open.element();
      DirectoryEntry entry = next(in);
      if (entry != null) {
        show(in.number, entry);
      } else {
        open.pop();
        if (!open.isEmpty()) {
          visitor.isIn(open.element().number);
        }
      }
    }
    open.clear();
  }

  private @Nullable DirectoryEntry next(OpenDirectory in) {
    if (!in.entries.hasNext()) {
      in.entries = tree.list(in.number, in.position, ENTRIES_AT_ONCE).iterator();
      if (!in.entries.hasNext()) {
        return null;
      }
    }
    DirectoryEntry entry = in.entries.next();
    in.position = entry.position();
    return entry;
  }

  private void show(long directory, DirectoryEntry listed) {
    DirectoryEntry entry;
    try {
      entry = tree.identified(directory, listed);
    } catch (FsException e) {
      visitor.failed(listed.inode(), e);
      return;
    }
    long number = entry.inode();
    switch (entry.type()) {
      case DIRECTORY -> {
        if (visitor.enters(number)) {
          open(number);
        }
      }
      case REGULAR -> visitor.file(number);
      case SYMBOLIC_LINK -> visitor.symbolicLink(number);
      default -> {}
    }
  }

  private void open(long directory) {
    try {
      tree.open(directory);
      open.push(new OpenDirectory(directory));
      visitor.isIn(directory);
    } catch (FsException e) {
      visitor.failed(directory, e);
    }
  }
}
