package io.pmfs.writable.steps;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.tree.Homes;
import io.pmfs.writable.tree.SourceTree;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Creates, links and removes at the source, and sets attributes. Each step can be repeated after a
 * crash at any moment, because it first checks whether it was done. Used by one thread.
 */
@SuppressWarnings("try")
public final class NameStep {
  private static final int PERMISSIONS = 07777;

  /** A change of owner clears these bits. */
  private static final int SET_ID = 06000;

  private final Step step;
  private final Temporaries temporaries;
  private final SourceAttributes attributes;
  private final UnlinkedFiles unlinked;
  private final Completion completion;
  private final State state;
  private final OutputCalls calls;

  public NameStep(
      Step step, Temporaries temporaries, UnlinkedFiles unlinked, Completion completion) {
    this.step = step;
    this.completion = completion;
    this.temporaries = temporaries;
    this.attributes = step.attributes();
    this.unlinked = unlinked;
    this.state = step.state();
    this.calls = step.calls();
  }

  // ---- creating

  public Recording mkdir(Change.MakeDirectory change) throws FsException {
    try (SourceTree.Directory directory = step.open(change.at().directory())) {
      FileName name = change.at().name();
      boolean isAgain = step.isAgain() && temporaries.isIntended(change);
      if (!isAgain) {
        temporaries.intend(change, change.at().directory());
      }
      boolean isMade = as(change, () -> calls.mkdir(directory.file(), name, mode(change)));
      try (SourceTree.Directory node = directory.node(name)) {
        Stat there = node.status(Inode.NO_NAME);
        if (there.attributes().type() != FileType.DIRECTORY) {
          return makeBeside(
              change,
              directory,
              free -> as(change, () -> calls.mkdir(directory.file(), free, mode(change))));
        }
        boolean mayBeOwn = step.actors().mayHaveMade(change, there.attributes(), isMade);
        if (isMade || (isAgain && mayBeOwn)) {
          Recording made =
              made(
                  change,
                  directory,
                  name,
                  node,
                  mayBeOwn ? there : null,
                  () -> completion.setAttributes(node, change, mayBeOwn));
          return made.and(Step.owned(change.inode(), mayBeOwn))
              .and(isMade ? update -> step.tree().addEmpty(change.inode()) : Recording.NOTHING);
        }
        Recording merged = made(change, directory, name, node, null, () -> {});
        return mayBeOwn
            ? merged
            : merged
                .and(Step.adopted(change.inode(), there))
                .and(step.conflict(change, "another user made this directory, and keeps it"));
      }
    }
  }

  private static int mode(Change.Made change) {
    return change.attributes().mode() & PERMISSIONS;
  }

  private interface Call {
    void make() throws FsException;
  }

  /**
   * Makes a call as the user of a change. The call must do nothing else: the tables and local files
   * are not the user's.
   *
   * @return false if the name is taken
   */
  private boolean as(Change change, Call call) throws FsException {
    try (OutputCalls.Acting acting = step.actors().as(change)) {
      call.make();
      return true;
    } catch (FsException e) {
      if (e.errno() != Errno.EEXIST) {
        throw e;
      }
      return false;
    }
  }

  public Recording symlink(Change.MakeSymbolicLink change) throws FsException {
    FileName target = change.target();
    return make(
        change,
        (directory, name) -> calls.symlink(target, directory.file(), name),
        (directory, name, there) ->
            there.attributes().type() == FileType.SYMBOLIC_LINK
                && calls.readSymbolicLink(directory.file(), name).equals(target));
  }

  public Recording mknod(Change.MakeNode change) throws FsException {
    Attributes wanted = change.attributes();
    return make(
        change,
        (directory, name) -> calls.mknod(directory.file(), name, wanted.mode(), wanted.device()),
        (directory, name, there) ->
            there.attributes().type() == wanted.type()
                && there.attributes().device() == wanted.device());
  }

  private interface Maker {
    void make(SourceTree.Directory directory, FileName name) throws FsException;
  }

  /** Whether the file that exists is the one to create. */
  private interface Check {
    boolean test(SourceTree.Directory directory, FileName name, Stat there) throws FsException;
  }

  private Recording make(Change.Made change, Maker maker, Check isOurs) throws FsException {
    try (SourceTree.Directory directory = step.open(change.at().directory())) {
      FileName name = change.at().name();
      boolean isMade = as(change, () -> maker.make(directory, name));
      try (SourceTree.Directory node = directory.node(name)) {
        Stat there = node.status(Inode.NO_NAME);
        boolean isOwn = step.actors().mayHaveMade(change, there.attributes(), isMade);
        boolean isTaken = isMade || isOwn || there.attributes().type() == FileType.SYMBOLIC_LINK;
        if (!isTaken || !isOurs.test(directory, name, there)) {
          return makeBeside(
              change, directory, free -> as(change, () -> maker.make(directory, free)));
        }
        return made(
            change,
            directory,
            name,
            node,
            isOwn ? there : null,
            () -> completion.setAttributes(node, change, isOwn));
      }
    }
  }

  /**
   * Completes a node that has its name.
   *
   * @param node it, opened
   */
  private Recording made(
      Change.Named change,
      SourceTree.Directory directory,
      FileName name,
      SourceTree.Directory node,
      @Nullable Stat made,
      Step.Rest rest)
      throws FsException {
    long where = change.at().directory();
    Recording rested =
        step.finish(
            change,
            where,
            made,
            () -> {
              rest.make();
              step.sync(directory);
            });
    return step.added(change.inode(), where, name, node.status(Inode.NO_NAME)).and(rested);
  }

  private Recording makeBeside(
      Change.Made change, SourceTree.Directory directory, Step.Making making) throws FsException {
    FileName beside = step.makeBeside(change.at().name(), making);
    try (SourceTree.Directory node = directory.node(beside)) {
      return made(change, directory, beside, node, null, () -> {})
          .and(step.aside(change.inode(), change.at().directory()))
          .and(renamedInMount(change.inode(), change.at().directory(), beside))
          .and(
              step.conflict(
                  change, "another program created this name; yours is saved as " + beside));
    }
  }

  private static Recording renamedInMount(long number, long directory, FileName name) {
    return update -> {
      Inode inode = update.find(number);
      if (inode != null && !inode.isRemoved()) {
        update.put(inode.withPlace(directory, name));
      }
    };
  }

  // ---- links

  public Recording link(Change.Link change) throws FsException {
    Inode inode = step.inode(change);
    if (inode == null || !inode.hasHome()) {
      return Recording.NOTHING;
    }
    FileName from = inode.homeName();
    try (SourceTree.Directory source = step.open(inode.homeParent());
        SourceTree.Directory directory = step.open(change.at().directory())) {
      FileName name = change.at().name();
      Stat linked = Step.find(source, from);
      if (linked == null || !isThis(inode, linked)) {
        return step.conflict(change, "another program removed the linked file");
      }
      boolean isMade = as(change, () -> calls.link(source.file(), from, directory.file(), name));
      if (isMade || directory.status(name).isSameFile(linked)) {
        return linked(change, inode, linked, directory, name);
      }
      FileName beside =
          step.makeBeside(
              name,
              free -> as(change, () -> calls.link(source.file(), from, directory.file(), free)));
      return linked(change, inode, linked, directory, beside)
          .and(
              step.conflict(
                  change, "another program created this name; yours is saved as " + beside));
    }
  }

  private Recording linked(
      Change.Link change, Inode inode, Stat before, SourceTree.Directory directory, FileName name)
      throws FsException {
    long where = change.at().directory();
    try (SourceTree.Directory node = directory.node(name, before)) {
      Recording rested = step.finish(change, where, directory);
      Stat now = step.after(inode, before, node.status(Inode.NO_NAME), false);
      return step.added(inode.number(), where, name, now).and(rested);
    }
  }

  /** Whether the source's file is this node. */
  private boolean isThis(Inode inode, Stat there) throws FsException {
    Stat seen = inode.seen();
    return seen == null
        || seen.isSameFile(there)
        || step.versions().isOwnVersion(there, inode.number());
  }

  // ---- removing

  private interface Removal {
    Recording remove(Inode inode, At home, SourceTree.Directory directory, Stat there)
        throws FsException;
  }

  /** Removes the name of a change; does nothing if it is gone. */
  private Recording remove(Change.Removal change, Removal removal) throws FsException {
    Inode inode = state.find(change.inode());
    At known = inode == null ? null : home(inode, change.at());
    At home = inode != null && known == null && !inode.hasHome() ? birth(inode) : known;
    if (inode == null || home == null) {
      return Recording.NOTHING;
    }
    step.times().disturb(change, home.directory());
    try (SourceTree.Directory directory = step.openIfThere(home.directory())) {
      Stat there = directory == null ? null : Step.find(directory, home.name());
      if (there != null && known == null && !step.versions().isOwnVersion(there, inode.number())) {
        return Recording.NOTHING;
      }
      return directory == null || there == null
          ? removed(inode, home).and(step.linksOf(inode, home))
          : removal.remove(inode, home, directory, there);
    }
  }

  /** The name under which a late failure left the file; null if there was none. */
  private @Nullable At birth(Inode inode) throws FsException {
    for (Change.Content content : step.versions().contents(inode.number())) {
      if (content.isFirst() && temporaries.isIntended(content)) {
        return content.name();
      }
    }
    return null;
  }

  private Recording removed(Inode inode, At home) {
    return step.removed(inode.number(), home.directory(), home.name());
  }

  public Recording unlink(Change.Unlink change) throws FsException {
    return remove(
        change,
        (inode, home, directory, there) -> unlinkThere(change, inode, home, directory, there));
  }

  private Recording unlinkThere(
      Change change, Inode inode, At home, SourceTree.Directory directory, Stat there)
      throws FsException {
    Stat seen = inode.seen();
    boolean isOther =
        inode.isRegular()
            ? seen == null || !seen.hasSameContent(there)
            : seen == null || !seen.isSameFile(there);
    if (isOther && !step.versions().isOwnVersion(there, inode.number())) {
      return lost(inode, home)
          .and(step.conflict(change, "another program changed this file; it was not removed"));
    }
    Recording remaining = unlinked.of(inode);
    step.tree().beginMove();
    try (OutputCalls.Acting acting = step.actors().as(change)) {
      calls.unlink(directory.file(), home.name());
    }
    Recording rested = step.finish(change, home.directory(), directory);
    return removed(inode, home).and(remaining).and(step.linksOf(inode, home)).and(rested);
  }

  /** Handles a name that another program's file has now. */
  private Recording lost(Inode inode, At home) {
    return update -> {
      Inode now = update.find(inode.number());
      if (now != null) {
        Inode next = step.homes().remove(update, now, home);
        update.put(next.hasHome() ? next : Homes.unseen(update, next));
      }
      step.tree().forget(home.directory());
    };
  }

  /** The name at the source of a change's node; null if it has none. */
  private @Nullable At home(Inode inode, At exact) throws FsException {
    List<At> homes;
    try (State.Held held = state.hold()) {
      homes = step.homes().all(inode);
    }
    if (homes.contains(exact)) {
      return exact;
    }
    // A node saved under another name, or moved by another program.
    return homes.size() == 1 && (inode.is(Inode.ASIDE) || inode.isDirectory())
        ? homes.get(0)
        : null;
  }

  public Recording rmdir(Change.RemoveDirectory change) throws FsException {
    return remove(
        change,
        (inode, home, directory, there) -> rmdirThere(change, inode, home, directory, there));
  }

  private Recording rmdirThere(
      Change change, Inode inode, At home, SourceTree.Directory directory, Stat there)
      throws FsException {
    Stat seen = inode.seen();
    boolean isSame = seen != null && seen.isSameFile(there);
    if (!isSame || !tryRmdir(change, directory, home.name())) {
      return lost(inode, home)
          .and(step.conflict(change, "another program uses the directory; it was not removed"));
    }
    Recording rested = step.finish(change, home.directory(), directory);
    return removed(inode, home).and(update -> step.tree().forget(inode.number())).and(rested);
  }

  private boolean tryRmdir(Change change, SourceTree.Directory directory, FileName name)
      throws FsException {
    return rmdir(change, directory, name)
        || (temporaries.clear(change.inode()) && rmdir(change, directory, name));
  }

  private boolean rmdir(Change change, SourceTree.Directory directory, FileName name)
      throws FsException {
    try (OutputCalls.Acting acting = step.actors().as(change)) {
      calls.rmdir(directory.file(), name);
      return true;
    } catch (FsException e) {
      if (e.errno() != Errno.ENOTEMPTY && e.errno() != Errno.EEXIST) {
        throw e;
      }
      return false;
    }
  }

  // ---- attributes

  public Recording attributes(Change.SetAttributes change) throws FsException {
    Inode inode = step.inode(change);
    boolean isThere =
        inode != null && (inode.hasHome() || inode.number() == WritableFileSystem.ROOT);
    if (inode == null || !isThere || change.isTouch()) {
      return Recording.NOTHING;
    }
    boolean isRoot = inode.number() == WritableFileSystem.ROOT;
    try (SourceTree.Directory directory =
            step.open(isRoot ? WritableFileSystem.ROOT : inode.homeParent());
        SourceTree.Directory node =
            step.node(directory, isRoot ? Inode.NO_NAME : inode.homeName(), inode.seen())) {
      if (node == null) {
        return replaced(change);
      }
      Stat there = node.status(Inode.NO_NAME);
      try {
        setAttributesAs(node, change, there, inode.is(Inode.FOREIGN));
      } catch (FsException e) {
        step.recordNow(seenAfter(inode, there, node)); // Some may be set already.
        throw e;
      }
      Recording seen = seenAfter(inode, there, node);
      return inode.is(Inode.FOREIGN)
          ? seen.and(Step.adopted(inode.number(), node.status(Inode.NO_NAME)))
          : seen;
    }
  }

  private Recording replaced(Change change) throws FsException {
    return step.conflict(
        change, "another program replaced this file; its attributes were not changed");
  }

  private Recording seenAfter(Inode inode, Stat before, SourceTree.Directory node)
      throws FsException {
    Stat now = node.status(Inode.NO_NAME);
    return Step.seen(inode.number(), step.after(inode, before, now, false));
  }

  /** The kernel has allowed the change; the process may have had more groups than its user. */
  private void setAttributesAs(
      SourceTree.Directory node, Change.SetAttributes change, Stat there, boolean isForeign)
      throws FsException {
    try (OutputCalls.Acting acting = step.actors().as(change)) {
      setAttributes(node, change, there, acting);
      return;
    } catch (FsException e) {
      if (isForeign || (e.errno() != Errno.EPERM && e.errno() != Errno.EACCES)) {
        throw e;
      }
    }
    try (OutputCalls.Acting daemon = () -> {}) {
      setAttributes(node, change, there, daemon);
    }
  }

  private void setAttributes(
      SourceTree.Directory node, Change.SetAttributes change, Stat there, OutputCalls.Acting acting)
      throws FsException {
    Attributes wanted = change.attributes();
    Attributes found = there.attributes();
    if (change.sets(Change.SetAttributes.OWNER)
        && (found.uid() != wanted.uid() || found.gid() != wanted.gid())) {
      calls.chown(node.file(), wanted.uid(), wanted.gid());
    }
    boolean setsMode = change.sets(Change.SetAttributes.MODE);
    if (!setsMode && change.sets(Change.SetAttributes.OWNER)) {
      int now = node.status(Inode.NO_NAME).attributes().mode();
      setsMode = ((now ^ wanted.mode()) & SET_ID) != 0;
    }
    if (setsMode && wanted.type() != FileType.SYMBOLIC_LINK) {
      attributes.setMode(node, wanted, acting);
    }
    if (change.setsTimes()) {
      calls.setTimes(node.file(), wanted.accessTime(), wanted.modificationTime());
    }
  }

  public Recording extended(Change.SetExtended change) throws FsException {
    Inode inode = step.inode(change);
    if (inode == null || !inode.hasHome()) {
      return Recording.NOTHING;
    }
    try (SourceTree.Directory directory = step.open(inode.homeParent());
        SourceTree.Directory node = step.node(directory, inode.homeName(), inode.seen())) {
      if (node == null) {
        return replaced(change);
      }
      Stat there = node.status(Inode.NO_NAME);
      setExtendedAs(node, change);
      return seenAfter(inode, there, node);
    }
  }

  private void setExtendedAs(SourceTree.Directory node, Change.SetExtended change)
      throws FsException {
    try (OutputCalls.Acting acting = step.actors().as(change)) {
      FileName value = change.value();
      if (value != null) {
        calls.setExtendedAttribute(node.file(), change.name(), value.bytes());
      } else {
        removeExtended(node, change.name());
      }
    }
  }

  private void removeExtended(SourceTree.Directory node, FileName attribute) throws FsException {
    try {
      calls.removeExtendedAttribute(node.file(), attribute);
    } catch (FsException e) {
      if (e.errno() != Errno.ENODATA) {
        throw e;
      }
    }
  }
}
