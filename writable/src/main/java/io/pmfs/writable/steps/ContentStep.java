package io.pmfs.writable.steps;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.tree.Homes;
import io.pmfs.writable.tree.Listing;
import io.pmfs.writable.tree.SourceTree;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Copies announced contents to the source. A new file appears complete under its name; growth is
 * appended; any other content replaces the file as a whole. Used by one thread.
 */
@SuppressWarnings("try")
public final class ContentStep {
  /** Larger files appear one by one, so that the first need not wait for the last. */
  private static final int SMALL_BYTES = 1 << 20;

  private final Step step;
  private final Copies copies;
  private final Temporaries temporaries;
  private final Completion completion;
  private final SourceAttributes attributes;
  private final State state;
  private final OutputCalls calls;

  public ContentStep(Step step, Copies copies, Temporaries temporaries, Completion completion) {
    this.step = step;
    this.completion = completion;
    this.copies = copies;
    this.temporaries = temporaries;
    this.attributes = step.attributes();
    this.state = step.state();
    this.calls = step.calls();
  }

  /** Whether a content will be appended, so that it needs no copy in advance. */
  public static boolean isAppended(Change.Content change, Inode inode) {
    return !change.isFirst()
        && inode.hasHome()
        && inode.drainedSize() > 0
        && inode.generation() == change.generation()
        && inode.drainedSize() <= change.size();
  }

  /** Whether an earlier process put a content under one of its names without recording it. */
  public boolean isDone(Change.Content change) throws FsException {
    Inode inode = state.find(change.inode());
    return inode != null
        && inode.hasHome()
        && (isAppended(change, inode)
            ? OwnVersions.isVersion(step.tree().statusAtHome(inode), change)
            : !look(change, inode).made.isEmpty());
  }

  public Recording apply(Change.Content change) throws FsException {
    Inode inode = step.inode(change);
    if (change.isTorn() && inode != null && inode.hasHome()) {
      Recording whole = beforeCut(change, inode);
      if (whole != null || change.isLost()) {
        return whole == null ? Recording.NOTHING : whole;
      }
    }
    At first = change.name();
    if (first != null && change.isFirst()) {
      return appear(change, first.directory(), first.name());
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

  private Recording appear(Change.Content change, long where, FileName name) throws FsException {
    step.times().disturb(change, where);
    try (SourceTree.Directory directory = step.open(where)) {
      Stat there = Step.find(directory, name);
      if (there != null && step.versions().isMade(there, null, change)) {
        copies.discard(change);
        try (SourceTree.Directory node = directory.node(name, there)) {
          return appeared(
              change, directory, where, name, node, () -> completion.agree(node, change));
        }
      }
      boolean isEarlier = there != null && step.versions().isOwnVersion(there, change.inode());
      Copies.Copy copy = finish(copies.take(change), change);
      temporaries.prove(List.of(copy));
      try (SourceTree.Directory from = step.open(copy.directory())) {
        giveRights(change, from, copy);
        step.tree().beginMove();
        if (there != null && isEarlier) {
          Step.require(directory, name, there);
          rename(change, from, copy, directory, new At(where, name));
          return appeared(change, directory, where, name, copy);
        }
        if (step.renameFreeAs(change, from, copy.name(), directory, name)) {
          temporaries.used(change);
          return appeared(change, directory, where, name, copy);
        }
        FileName beside =
            step.makeBeside(
                name, free -> step.renameFreeAs(change, from, copy.name(), directory, free));
        return appeared(change, directory, where, beside, copy)
            .and(step.aside(change.inode(), where))
            .and(
                step.conflict(
                    change, "another program created this name; yours is saved as " + beside));
      }
    }
  }

  private Recording appeared(
      Change.Content change,
      SourceTree.Directory directory,
      long where,
      FileName name,
      Copies.Copy copy)
      throws FsException {
    try (SourceTree.Directory node = node(directory, name, copy)) {
      return appeared(change, directory, where, name, node, () -> {});
    }
  }

  /** Opens a copy under its final name; ESTALE if another program has replaced it already. */
  private static SourceTree.Directory node(
      SourceTree.Directory directory, FileName name, Copies.Copy copy) throws FsException {
    Stat made = copy.made();
    return made == null ? directory.node(name) : directory.node(name, made);
  }

  private Recording appeared(
      Change.Content change,
      SourceTree.Directory directory,
      long where,
      FileName name,
      SourceTree.Directory node,
      Step.Rest rest)
      throws FsException {
    Recording rested =
        step.finish(
            change,
            where,
            null,
            () -> {
              rest.make();
              step.sync(directory);
            });
    return named(change, where, name, node).and(rested);
  }

  private Recording named(
      Change.Content change, long where, FileName name, SourceTree.Directory node)
      throws FsException {
    Stat there = node.status(Inode.NO_NAME);
    return step.added(change.inode(), where, name, there).and(drained(change, there));
  }

  /** Whether a content is a small new file that no earlier attempt may have named. */
  public boolean isNewFile(Change.Content change) throws FsException {
    return change.isFirst()
        && change.name() != null
        && !change.isTorn()
        && change.size() <= SMALL_BYTES
        && (copies.isAhead(change.sequence()) || !temporaries.isIntended(change));
  }

  /**
   * Creates new files, and syncs their directories once for all of them.
   *
   * @throws FsException also if a name is taken; some files may have their names already, as after
   *     an earlier attempt
   */
  public Recording appear(List<Change.Content> changes) throws FsException {
    List<Copies.Copy> made = new ArrayList<>();
    for (Change.Content change : changes) {
      made.add(finish(copies.take(change), change));
    }
    temporaries.prove(made);
    Recording recording = Recording.NOTHING;
    Set<Long> directories = new LinkedHashSet<>();
    step.tree().beginMove();
    for (int i = 0; i < made.size(); i++) {
      Change.Content change = changes.get(i);
      At at = Objects.requireNonNull(change.name());
      step.times().disturb(change, at.directory());
      try (SourceTree.Directory directory = step.open(at.directory());
          SourceTree.Directory from = step.open(made.get(i).directory())) {
        giveRights(change, from, made.get(i));
        if (!step.renameFreeAs(change, from, made.get(i).name(), directory, at.name())) {
          throw new FsException(Errno.EEXIST, at.name().toString());
        }
        temporaries.used(change);
        try (SourceTree.Directory node = node(directory, at.name(), made.get(i))) {
          recording = recording.and(named(change, at.directory(), at.name(), node));
        }
      }
      directories.add(at.directory());
    }
    sync(directories);
    return recording;
  }

  /** Records that the source has a content, so that later growth can be appended. */
  private static Recording drained(Change.Content change, Stat there) {
    boolean isMore = change.isLost() || there.attributes().size() > change.size();
    return update -> {
      Inode inode = update.find(change.inode());
      if (inode != null && isMore && isShown(change, inode)) {
        update.put(shown(inode, there.attributes()));
      } else if (inode != null && inode.generation() == change.generation() && !isMore) {
        update.put(inode.withData(inode.generation(), inode.announcedSize(), change.size()));
      } else if (inode != null && inode.generation() != 0) {
        update.put(inode.withData(inode.generation(), inode.announcedSize(), -1));
      }
    };
  }

  /** Whether the mount shows what a power failure left of a content. */
  private static boolean isShown(Change.Content change, Inode inode) {
    boolean isLeft =
        inode.generation() == change.generation() && inode.attributes().size() == change.size();
    return !inode.is(Inode.WRITING) && (inode.generation() == 0 || isLeft);
  }

  /** The node with the content that the source has. */
  private static Inode shown(Inode inode, Attributes there) {
    return inode
        .withData(0, 0, -1)
        .withSize(there.size(), there.blocks())
        .withTimes(there.modificationTime(), inode.attributes().changeTime());
  }

  /**
   * Handles a content cut by a power failure that also lost the record that the source has it: the
   * source may have more than is left here.
   *
   * @return null if the source has only the previous content
   */
  private @Nullable Recording beforeCut(Change.Content change, Inode inode) throws FsException {
    Found found = look(change, inode);
    boolean isReplaced = !found.made.isEmpty() && (found.old.isEmpty() || !found.hasOthers);
    if (isReplaced) {
      return replace(change, inode);
    }
    try (SourceTree.Directory directory = step.open(inode.homeParent())) {
      Stat there = Step.find(directory, inode.homeName());
      Stat seen = inode.seen();
      if (there == null || seen == null || !seen.isSameFile(there)) {
        return null;
      }
      boolean isAppended = change.isLost() && temporaries.isIntended(change);
      return isAppended || OwnVersions.isVersion(there, change)
          ? Step.seen(inode.number(), there).and(drained(change, there))
          : null;
    }
  }

  /** Creates a file again that vanished from the source. */
  private Recording reappear(Change.Content change, @Nullable Inode inode) throws FsException {
    if (inode == null || inode.isRemoved() || inode.parent() == 0) {
      copies.discard(change);
      return Recording.NOTHING;
    }
    return appear(change, inode.parent(), inode.name());
  }

  /**
   * Replaces a copy that lacks later attributes, or those of an earlier content: these may be set
   * together with the content.
   */
  private Copies.Copy finish(Copies.Copy copy, Change.Content change) throws FsException {
    if (copy.attributes().equals(change.attributes())
        && copy.change() instanceof Change.Content copied
        && Objects.equals(copied.extended(), change.extended())) {
      return copy;
    }
    copies.discard(change);
    return copies.take(change);
  }

  // ---- a file that grew

  private Recording append(Change.Content change, Inode inode) throws FsException {
    try (SourceTree.Directory directory = step.open(inode.homeParent())) {
      Stat there = Step.find(directory, inode.homeName());
      if (there == null) {
        return appear(change, inode.homeParent(), inode.homeName());
      }
      if (!isUntouched(there, inode)) {
        return keepBeside(change, inode);
      }
      copies.discard(change);
      At home = new At(inode.homeParent(), inode.homeName());
      int file = openToWrite(change, directory, home, there);
      if (file < 0) {
        return replace(change, inode);
      }
      intend(file, () -> temporaries.intendAppend(change, inode.homeParent()));
      Stat now =
          writeInPlace(
              change,
              directory,
              inode.homeName(),
              file,
              () -> {
                if (!step.versions().isMade(there, inode.seen(), change)) {
                  calls.truncate(file, copies.transfer(change, file, inode.drainedSize()));
                }
              });
      return Step.seen(inode.number(), now).and(drained(change, now));
    }
  }

  /** Records an intent for an open file, which is closed if that fails. */
  private void intend(int file, Step.Rest intent) throws FsException {
    try {
      intent.make();
    } catch (FsException | RuntimeException | Error e) {
      calls.close(file);
      throw e;
    }
  }

  /**
   * Changes a file of the source in place. If that fails, what it made of the file is recorded: any
   * other state is another program's work.
   *
   * @param file the open file, which is closed
   * @return the file then
   */
  private Stat writeInPlace(
      Change.Content change,
      SourceTree.Directory directory,
      FileName name,
      int file,
      Step.Rest writing)
      throws FsException {
    try {
      return writeAndClose(change, file, writing);
    } catch (FsException e) {
      try {
        // After the close, because network file systems know only then what arrived.
        temporaries.leave(change, directory.status(name));
      } catch (FsException unknown) {
        e.addSuppressed(unknown);
      }
      throw e;
    }
  }

  private Stat writeAndClose(Change.Content change, int file, Step.Rest writing)
      throws FsException {
    SourceTree.Directory node = step.tree().opened(file);
    try {
      writing.make();
      completion.agree(node, change);
      calls.sync(file, false);
      return node.status(Inode.NO_NAME);
    } finally {
      calls.close(file);
    }
  }

  /**
   * Opens a file for its writer. If the mode forbids that now, although it did not when the user
   * opened the file, root opens it. If that fails, what the file is like is recorded: its change
   * time will be another one when, say, it is no longer immutable.
   *
   * @return -1 if its mode forbids it even to root
   */
  private int openToWrite(
      Change.Content change, SourceTree.Directory directory, At home, Stat expected)
      throws FsException {
    int file = -1;
    try {
      file = openToWrite(change, directory, home.name());
      if (file >= 0) {
        step.tree().opened(file).require(expected, home.name());
      }
      return file;
    } catch (FsException e) {
      if (file < 0) {
        temporaries.leave(change, home.directory(), expected);
      }
      if (file >= 0) {
        calls.close(file);
      }
      throw e;
    }
  }

  private int openToWrite(Change.Content change, SourceTree.Directory directory, FileName name)
      throws FsException {
    try (OutputCalls.Acting acting = step.actors().as(change)) {
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

  /** Whether no other program has changed the file since this mount last saw it. */
  private boolean isUntouched(Stat there, Inode inode) throws FsException {
    Stat seen = inode.seen();
    return (seen != null && seen.hasSameContent(there))
        || step.versions().isOwnVersion(there, inode.number());
  }

  // ---- replaced content

  /** The names of a file at the source, by what they lead to now. */
  private static final class Found {
    /** Names of the previous version. */
    final List<At> old = new ArrayList<>();

    /** Names of the new version. */
    final List<At> made = new ArrayList<>();

    /** Names that another program removed. */
    final List<At> gone = new ArrayList<>();

    /** Names of another file, or of changed content. */
    final List<At> foreign = new ArrayList<>();

    /** What the names lead to. */
    final Map<At, Stat> there = new HashMap<>();

    /** Whether the previous version has names unknown to the mount. */
    boolean hasOthers;

    Stat get(At home) {
      return Objects.requireNonNull(there.get(home));
    }
  }

  private Found look(Change.Content change, Inode inode) throws FsException {
    Found found = new Found();
    List<At> homes;
    try (State.Held held = state.hold()) {
      homes = step.homes().all(inode);
    }
    Map<Long, Integer> more = new HashMap<>();
    for (At home : homes) {
      try (SourceTree.Directory directory = step.open(home.directory())) {
        Stat there = Step.find(directory, home.name());
        if (there != null) {
          found.there.put(home, there);
        }
        if (there == null) {
          found.gone.add(home);
        } else if (isMade(there, change, inode)) {
          found.made.add(home);
        } else if (isUntouched(there, inode)) {
          found.old.add(home);
          more.merge(there.inode(), there.attributes().linkCount() - 1, (left, one) -> left - 1);
        } else {
          found.foreign.add(home);
        }
      }
    }
    found.hasOthers = more.values().stream().anyMatch(left -> left > 0);
    return found;
  }

  /** Whether an earlier attempt has put the new version, as another file, under this name. */
  private boolean isMade(Stat there, Change.Content change, Inode inode) throws FsException {
    Stat seen = inode.seen();
    return (seen == null || !seen.isSameFile(there)) && step.versions().isMade(there, seen, change);
  }

  /** Replaces a file by a complete copy, name by name; each name always has either version. */
  private Recording replace(Change.Content change, Inode inode) throws FsException {
    Found found = look(change, inode);
    if (found.old.isEmpty() && found.made.isEmpty()) {
      if (found.foreign.isEmpty()) {
        return without(change, found.gone)
            .and(appear(change, inode.homeParent(), inode.homeName()));
      }
      return keepBeside(
          change, inode.withHome(found.foreign.get(0).directory(), found.foreign.get(0).name()));
    }
    if (!found.old.isEmpty()
        && (found.hasOthers || step.versions().isOverwriting(inode.number()))) {
      return overwrite(change, found, found.old.get(0));
    }
    At made = found.made.isEmpty() ? null : found.made.get(0);
    Stat version = made == null ? null : found.there.get(made);
    if (made != null) {
      copies.discard(change);
      step.tree().beginMove();
    } else {
      At first = found.old.get(0);
      version = putOver(change, found, first);
      if (version == null) {
        step.tree().endMove(); // Nothing has moved, and writing may last long.
        return overwrite(change, found, first);
      }
      found.made.add(found.old.remove(0));
    }
    Stat there = Objects.requireNonNull(version);
    Recording kept = Recording.NOTHING;
    for (At home : found.old) {
      if (putOver(change, found, found.made.get(0), home)) {
        found.made.add(home);
      } else {
        found.gone.add(home);
        kept = kept.and(conflict(change, home, "the source does not allow replacing this name"));
      }
    }
    for (At home : found.foreign) {
      found.gone.add(home);
      kept =
          kept.and(
              conflict(
                  change,
                  home,
                  "another program changed this name; the file's other names have the new content"));
    }
    Recording rested =
        step.finish(
            change,
            found.made.get(0).directory(),
            null,
            () -> {
              if (made != null) {
                agree(change, made, there);
              }
              syncHomes(found.made);
            });
    return replaced(change, found.made, there)
        .and(without(change, found.gone))
        .and(kept)
        .and(rested);
  }

  private void agree(Change.Content change, At home, Stat there) throws FsException {
    try (SourceTree.Directory directory = step.open(home.directory());
        SourceTree.Directory node = directory.node(home.name(), there)) {
      completion.agree(node, change);
    }
  }

  private void syncHomes(List<At> homes) throws FsException {
    Set<Long> directories = new LinkedHashSet<>();
    homes.forEach(home -> directories.add(home.directory()));
    sync(directories);
  }

  private void sync(Set<Long> directories) throws FsException {
    for (long number : directories) {
      try (SourceTree.Directory directory = step.open(number)) {
        step.sync(directory);
      }
    }
  }

  private Recording conflict(Change.Content change, At home, String reason) throws FsException {
    return step.conflict(change, step.path(home.directory(), home.name()), reason);
  }

  /** Removes the names that the file no longer has at the source. */
  private Recording without(Change.Content change, List<At> gone) {
    return update -> {
      for (At home : gone) {
        update.put(step.homes().remove(update, update.inode(change.inode()), home));
        step.tree().forget(home.directory());
      }
    };
  }

  /**
   * Renames a complete copy over a name.
   *
   * @return the copy; null if neither the writer nor the daemon may change the directory
   */
  private @Nullable Stat putOver(Change.Content change, Found found, At home) throws FsException {
    try (SourceTree.Directory directory = step.open(home.directory())) {
      Copies.Copy copy = finish(copies.take(change), change);
      temporaries.prove(List.of(copy));
      try (SourceTree.Directory from = step.open(copy.directory())) {
        copyExtended(change, directory, home.name(), found.get(home), from, copy);
        giveRights(change, from, copy);
        step.tree().beginMove();
        Step.require(directory, home.name(), found.get(home));
        rename(change, from, copy, directory, home);
      }
      return copy.made();
    } catch (FsException e) {
      refuse(change, e);
      return null;
    }
  }

  /** Gives a further name to a file. */
  private boolean putOver(Change.Content change, Found found, At made, At home) throws FsException {
    try (SourceTree.Directory directory = step.open(home.directory())) {
      Copies.Copy link = copies.link(change, made);
      try (SourceTree.Directory from = step.open(link.directory())) {
        Step.require(directory, home.name(), found.get(home));
        rename(change, from, link, directory, home);
      }
      return true;
    } catch (FsException e) {
      refuse(change, e);
      return false;
    }
  }

  private void refuse(Change.Content change, FsException e) throws FsException {
    if (e.errno() != Errno.EACCES && e.errno() != Errno.EPERM) {
      throw e;
    }
    temporaries.removeTemporary(change);
  }

  private void rename(
      Change.Content change,
      SourceTree.Directory from,
      Copies.Copy copy,
      SourceTree.Directory to,
      At home)
      throws FsException {
    attributes.asWriter(
        change,
        step.tree().isForeign(home.directory()),
        () -> calls.rename(from.file(), copy.name(), to.file(), home.name(), 0));
    temporaries.used(change);
  }

  /**
   * Records that these names lead to a new version.
   *
   * @param version it
   */
  private Recording replaced(Change.Content change, List<At> homes, Stat version)
      throws FsException {
    Recording recording = Recording.NOTHING;
    for (At home : homes) {
      step.times().disturb(change, home.directory());
      try (SourceTree.Directory directory = step.open(home.directory());
          SourceTree.Directory node = directory.node(home.name(), version)) {
        Stat stat = node.status(Inode.NO_NAME);
        recording =
            recording
                .and(Step.seen(change.inode(), stat))
                .and(drained(change, stat))
                .and(update -> listed(home, stat));
      }
    }
    return recording;
  }

  private void listed(At home, Stat stat) {
    Listing listing = step.tree().known(home.directory());
    if (listing != null) {
      listing.add(home.name(), stat.inode(), stat.attributes().type());
    }
  }

  /** Gives a copy what a write leaves to its file, and no list that the directory gave it. */
  private void copyExtended(
      Change.Content change,
      SourceTree.Directory directory,
      FileName name,
      Stat there,
      SourceTree.Directory from,
      Copies.Copy copy)
      throws FsException {
    try (SourceTree.Directory old = directory.node(name, there);
        SourceTree.Directory made = node(from, copy.name(), copy)) {
      Map<FileName, byte[]> all = calls.extendedAttributesToCopy(old.file());
      byte[] list = all.get(PosixAcl.ACCESS);
      int mode = change.attributes().mode();
      byte[] wanted = list == null ? null : PosixAcl.withMode(list, mode);
      attributes.asWriter(change, false, () -> attributes.setList(made, wanted));
      for (Map.Entry<FileName, byte[]> attribute : all.entrySet()) {
        String full = attribute.getKey().toString();
        if (full.startsWith("user.") || isOfRoot(full)) {
          calls.setExtendedAttribute(made.file(), attribute.getKey(), attribute.getValue());
        } else if (isLabel(full)) {
          setLabel(made, attribute.getKey(), attribute.getValue());
        }
      }
    }
  }

  /** As {@link #copyExtended}; false if the source does not permit it. */
  private boolean isCopied(
      Change.Content change,
      SourceTree.Directory directory,
      FileName name,
      Stat there,
      SourceTree.Directory from,
      Copies.Copy copy)
      throws FsException {
    try {
      copyExtended(change, directory, name, there, from, copy);
      return true;
    } catch (FsException e) {
      if (e.errno() != Errno.EPERM && e.errno() != Errno.EACCES) {
        throw e;
      }
      return false;
    }
  }

  /** XFS shows a list under such a name, too: setting that one would undo the new mode. */
  private static boolean isOfRoot(String name) {
    return name.startsWith("trusted.") && !name.startsWith("trusted.SGI_ACL");
  }

  private void setLabel(SourceTree.Directory made, FileName name, byte[] value) throws FsException {
    try {
      attributes.setExtended(made, name, value);
    } catch (FsException e) {
      if (e.errno() != Errno.EACCES) { // The policy decides on labels.
        throw e;
      }
    }
  }

  /** Other attributes of that space vouch for the content: a write ends them. */
  private static boolean isLabel(String name) {
    return name.equals("security.selinux") || name.startsWith("security.SMACK64");
  }

  /** Gives a copy the rights that its file is to have, once it has the list, if there is one. */
  private void giveRights(Change.Content change, SourceTree.Directory from, Copies.Copy copy)
      throws FsException {
    if (copy.change() instanceof Change.Content copied && copied.isFirst()) {
      return; // It has them, whatever was folded into the change since.
    }
    try (SourceTree.Directory made = node(from, copy.name(), copy);
        OutputCalls.Acting acting = step.actors().as(change)) {
      attributes.setRights(made, change.attributes(), acting);
    }
  }

  /**
   * Overwrites a file in place, because it has names unknown to the mount, which would keep the
   * previous version, or because its directory cannot be changed. The file is never shorter than
   * the shorter version.
   */
  private Recording overwrite(Change.Content change, Found found, At home) throws FsException {
    copies.discard(change);
    try (SourceTree.Directory directory = step.open(home.directory())) {
      int file = openToWrite(change, directory, home, found.get(home));
      if (file < 0) {
        throw new FsException(Errno.EACCES, home.name().toString());
      }
      intend(file, () -> temporaries.intendOverwrite(change, home.directory()));
      Stat now =
          writeInPlace(
              change,
              directory,
              home.name(),
              file,
              () -> calls.truncate(file, copies.transferOver(change, file)));
      return Step.seen(change.inode(), now)
          .and(drained(change, now))
          .and(without(change, found.gone));
    }
  }

  // ---- conflicts

  /** Saves this mount's content under a name beside the file that another program changed. */
  private Recording keepBeside(Change.Content change, Inode inode) throws FsException {
    FileName name = inode.homeName();
    Copies.Copy copy = finish(copies.take(change), change);
    temporaries.prove(List.of(copy));
    try (SourceTree.Directory directory = step.open(inode.homeParent());
        SourceTree.Directory from = step.open(copy.directory())) {
      Stat there = Step.find(directory, name);
      Stat seen = inode.seen();
      if (there == null
          || seen == null
          || !seen.isSameFile(there)
          || isCopied(change, directory, name, there, from, copy)) {
        giveRights(change, from, copy);
      }
      FileName beside =
          step.makeBeside(
              name, free -> step.renameFreeAs(change, from, copy.name(), directory, free));
      Recording rested = step.finish(change, inode.homeParent(), directory);
      Stat stat;
      try (SourceTree.Directory node = node(directory, beside, copy)) {
        stat = node.status(Inode.NO_NAME);
      }
      long where = inode.homeParent();
      return rested.and(
          update -> {
            Inode now = step.homes().clear(update, update.inode(inode.number()));
            update.put(Homes.unseen(update, now));
            step.added(inode.number(), where, beside, stat)
                .and(drained(change, stat))
                .and(step.aside(inode.number(), where))
                .and(
                    step.conflict(
                        change,
                        step.path(where, name),
                        "another program changed this file; yours is saved as " + beside))
                .record(update);
            Inode kept = update.inode(inode.number());
            update.put(kept.withPlace(where, beside));
          });
    }
  }
}
