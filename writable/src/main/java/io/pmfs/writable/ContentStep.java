package io.pmfs.writable;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.Step.Recording;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Brings announced contents to the source. A new file appears whole under its name; a file that
 * only grew is appended to; any other is replaced by a complete one. Used by one thread.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
final class ContentStep {
  private static final int PERMISSIONS = 07777;

  private final Step step;
  private final Copies copies;
  private final State state;
  private final OutputCalls calls;

  ContentStep(Step step, Copies copies) {
    this.step = step;
    this.copies = copies;
    this.state = step.state;
    this.calls = step.calls;
  }

  /** Whether a content will be appended to what the source has, and needs no copy before. */
  static boolean isAppended(Change change, Inode inode) {
    return !change.isFirst()
        && inode.hasHome()
        && inode.drainedSize() > 0
        && inode.generation() == change.generation()
        && inode.drainedSize() <= change.size();
  }

  /** Whether a former process brought a content to the source and did not record it. */
  boolean isDone(Change change) throws FsException {
    Inode inode = state.find(change.inode());
    return inode != null
        && inode.hasHome()
        && Step.isVersion(step.tree.statusAtHome(inode), change);
  }

  Recording apply(Change change) throws FsException {
    Inode inode = state.find(change.inode());
    if (change.isFirst()) {
      return appear(change, change.directory(), change.name());
    }
    if (inode == null || !inode.hasHome()) {
      return reappear(change, inode);
    }
    if (isAppended(change, inode)) {
      return append(change, inode);
    }
    return replace(change, inode);
  }

  // ---- a new name

  private Recording appear(Change change, long where, FileName name) throws FsException {
    try (SourceTree.Directory directory = step.open(where)) {
      Copies.Copy copy = copies.take(change);
      try (SourceTree.Directory from = step.open(copy.directory())) {
        finish(from, copy, change);
        step.tree.beginMove();
        if (step.renameFreeAs(change, from, copy.name(), directory, name)) {
          return appeared(change, directory, where, name);
        }
        Stat there = Step.find(directory, name);
        if (there != null && Step.isVersion(there, change)) {
          copies.remove(copy);
          return appeared(change, directory, where, name);
        }
        FileName beside =
            step.makeBeside(
                name, free -> step.renameFreeAs(change, from, copy.name(), directory, free));
        return appeared(change, directory, where, beside)
            .and(step.aside(change.inode(), where))
            .and(step.conflict(change, "another program made it; kept as " + beside));
      }
    }
  }

  private Recording appeared(
      Change change, SourceTree.Directory directory, long where, FileName name) throws FsException {
    step.sync(directory);
    return step.added(change.inode(), where, name, directory.status(name))
        .and(drained(change))
        .and(step.touched(directory, where, change.sequence()));
  }

  /** The source has a content: bytes that are written behind it can be appended. */
  private static Recording drained(Change change) {
    return update -> {
      Inode inode = update.find(change.inode());
      if (inode != null && inode.generation() == change.generation()) {
        update.put(inode.withData(inode.generation(), inode.announcedSize(), change.size()));
      } else if (inode != null && inode.generation() != 0) {
        update.put(inode.withData(inode.generation(), inode.announcedSize(), -1));
      }
    };
  }

  /** A content for a file that vanished from the source. */
  private Recording reappear(Change change, @Nullable Inode inode) throws FsException {
    if (inode == null || inode.isRemoved() || inode.parent() == 0) {
      copies.discard(change);
      return Recording.NOTHING;
    }
    return appear(change, inode.parent(), inode.name());
  }

  /** A change of attributes that is made together with the content may be later than the copy. */
  private void finish(SourceTree.Directory directory, Copies.Copy copy, Change change)
      throws FsException {
    if (copy.attributes().equals(change.wanted())) {
      return;
    }
    try (OutputCalls.Acting acting = calls.actAs(change.uid(), change.gid())) {
      copies.setAttributes(directory, copy.name(), change.wanted(), acting);
    }
  }

  // ---- a file that grew

  private Recording append(Change change, Inode inode) throws FsException {
    try (SourceTree.Directory directory = step.open(inode.homeParent())) {
      Stat there = Step.find(directory, inode.homeName());
      if (there == null) {
        return appear(change, inode.homeParent(), inode.homeName());
      }
      boolean isBegun = copies.isIntended(change);
      if (!isUntouched(there, inode, change, isBegun)) {
        return keepBeside(change, inode, directory);
      }
      copies.intend(change, inode.homeParent());
      int file = openToWrite(change, directory, inode.homeName());
      if (file < 0) {
        return replace(change, inode);
      }
      try {
        long end = copies.transfer(change, file, inode.drainedSize());
        calls.truncate(file, end);
        setTimes(directory, inode.homeName(), change, there);
        calls.sync(file, false);
      } finally {
        calls.close(file);
      }
      return Step.seen(inode.number(), directory.status(inode.homeName())).and(drained(change));
    }
  }

  /**
   * Opens a file that the mount let its user write. The mode may forbid it by now, as it did not
   * when the user opened the file; then root opens it.
   *
   * @return -1 if its mode forbids it
   */
  private int openToWrite(Change change, SourceTree.Directory directory, FileName name)
      throws FsException {
    try (OutputCalls.Acting acting = calls.actAs(change.uid(), change.gid())) {
      return calls.open(directory.file(), name, OutputCalls.O_WRONLY, 0);
    } catch (FsException e) {
      if (e.errno() != Errno.EACCES) {
        throw e;
      }
    }
    try {
      return calls.open(directory.file(), name, OutputCalls.O_WRONLY, 0);
    } catch (FsException e) {
      if (e.errno() != Errno.EACCES) {
        throw e;
      }
      return -1;
    }
  }

  /** Whether the file is as this mount saw it last. */
  private boolean isUntouched(Stat there, Inode inode, Change change, boolean isBegun) {
    if (step.isOwnVersion(there, inode.number())) {
      return true;
    }
    Stat seen = inode.seen();
    if (seen == null || !seen.isSameFile(there)) {
      return false;
    }
    long size = there.attributes().size();
    return seen.hasSameContent(there)
        || (isBegun && size >= inode.drainedSize() && size <= change.size());
  }

  private void setTimes(SourceTree.Directory directory, FileName name, Change change, Stat there)
      throws FsException {
    Attributes wanted = change.wanted();
    try (OutputCalls.Acting acting = calls.actAs(change.uid(), change.gid())) {
      if (((there.attributes().mode() ^ wanted.mode()) & PERMISSIONS) != 0) {
        calls.chmod(directory.file(), name, wanted.mode() & PERMISSIONS);
      }
      calls.setTimes(directory.file(), name, wanted.accessTime(), wanted.modificationTime());
    } catch (FsException e) {
      if (e.errno() != Errno.EPERM && e.errno() != Errno.EACCES) {
        throw e;
      }
      // Only its owner sets the times of a file that others may write.
      calls.setTimes(directory.file(), name, wanted.accessTime(), wanted.modificationTime());
    }
  }

  // ---- other content

  private Recording replace(Change change, Inode inode) throws FsException {
    try (SourceTree.Directory directory = step.open(inode.homeParent())) {
      FileName name = inode.homeName();
      Stat there = Step.find(directory, name);
      if (there == null) {
        return appear(change, inode.homeParent(), name);
      }
      List<Homes.Home> homes = homes(inode);
      if (Step.isVersion(there, change) && homes.size() == 1) {
        copies.discard(change);
        copies.removeTemporary(change);
        return replaced(change, directory, name);
      }
      if (!isUntouched(there, inode, change, false) && !copies.isOverwriting(change)) {
        return keepBeside(change, inode, directory);
      }
      if (there.attributes().linkCount() > 1 || homes.size() > 1) {
        copies.discard(change);
        return overwrite(change, inode, directory, there);
      }
      Copies.Copy copy;
      try {
        copy = copies.take(change);
      } catch (FsException e) {
        if (e.errno() != Errno.EACCES && e.errno() != Errno.EPERM) {
          throw e;
        }
        // The writer may change the file, but not its directory.
        return overwrite(change, inode, directory, there);
      }
      try (SourceTree.Directory from = step.open(copy.directory())) {
        copyExtended(directory, name, from, copy.name());
        finish(from, copy, change);
        step.tree.beginMove();
        try (OutputCalls.Acting acting = calls.actAs(change.uid(), change.gid())) {
          calls.rename(from.file(), copy.name(), directory.file(), name, 0);
        }
      }
      return replaced(change, directory, name);
    }
  }

  private List<Homes.Home> homes(Inode inode) throws FsException {
    try (State.Held held = state.hold()) {
      return step.homes.all(inode);
    }
  }

  private Recording replaced(Change change, SourceTree.Directory directory, FileName name)
      throws FsException {
    step.sync(directory);
    Stat stat = directory.status(name);
    Inode inode = state.inode(change.inode());
    return Step.seen(change.inode(), stat)
        .and(update -> listed(inode, stat))
        .and(drained(change))
        .and(step.touched(directory, inode.homeParent(), change.sequence()));
  }

  private void listed(Inode inode, Stat stat) {
    Listing listing = step.tree.known(inode.homeParent());
    if (listing != null) {
      listing.add(inode.homeName(), stat.inode(), stat.attributes().type());
    }
  }

  private void copyExtended(
      SourceTree.Directory directory, FileName name, SourceTree.Directory to, FileName toName)
      throws FsException {
    for (Map.Entry<FileName, byte[]> attribute :
        calls.extendedAttributes(directory.file(), name).entrySet()) {
      if (attribute.getKey().toString().startsWith("user.")) {
        calls.setExtendedAttribute(to.file(), toName, attribute.getKey(), attribute.getValue());
      }
    }
  }

  /** Writes into a file that has other names, which would stay behind otherwise. */
  private Recording overwrite(
      Change change, Inode inode, SourceTree.Directory directory, Stat there) throws FsException {
    copies.intendOverwrite(change, inode.homeParent());
    int file = openToWrite(change, directory, inode.homeName());
    if (file < 0) {
      throw new FsException(Errno.EACCES, inode.homeName().toString());
    }
    try {
      calls.truncate(file, 0);
      calls.truncate(file, copies.transfer(change, file, 0));
      setTimes(directory, inode.homeName(), change, there);
      calls.sync(file, false);
    } finally {
      calls.close(file);
    }
    return Step.seen(inode.number(), directory.status(inode.homeName())).and(drained(change));
  }

  // ---- conflicts

  /** Another program changed the file: this mount's content gets a name beside it. */
  private Recording keepBeside(Change change, Inode inode, SourceTree.Directory directory)
      throws FsException {
    FileName name = inode.homeName();
    Copies.Copy copy = copies.take(change);
    try (SourceTree.Directory from = step.open(copy.directory())) {
      finish(from, copy, change);
      FileName beside =
          step.makeBeside(
              name, free -> step.renameFreeAs(change, from, copy.name(), directory, free));
      step.sync(directory);
      Stat stat = directory.status(beside);
      long where = inode.homeParent();
      return update -> {
        Inode now = step.homes.clear(update, update.inode(inode.number()));
        update.put(Homes.unseen(update, now));
        step.added(inode.number(), where, beside, stat)
            .and(drained(change))
            .and(step.aside(inode.number(), where))
            .and(
                step.conflict(
                    change.at(where, name), "another program changed it; kept as " + beside))
            .record(update);
        Inode kept = update.inode(inode.number());
        update.put(kept.withPlace(where, beside));
      };
    }
  }
}
