package io.pmfs.writable.steps;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Intent;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.tree.SourceTree;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Completes changes whose main call was made in an earlier attempt: syncs directories, and sets the
 * attributes and times of new nodes. Used by one thread.
 */
@SuppressWarnings("try")
public final class Completion {
  private final Step step;
  private final State state;
  private final SourceAttributes attributes;

  public Completion(Step step) {
    this.step = step;
    this.state = step.state();
    this.attributes = step.attributes();
  }

  /**
   * Completes a change.
   *
   * @return null if it was not made, or if the source no longer has its result
   */
  public @Nullable Recording complete(Change change) throws FsException {
    boolean isTried = state.deferred().contains(change.sequence());
    Intent intent = isTried ? Intent.of(state, change.sequence()) : null;
    if (intent == null || intent.mark() != Intent.Mark.MADE) {
      return null;
    }
    Inode inode = step.inode(change);
    Stat there = inode == null || !inode.hasHome() ? null : atHome(inode);
    if (change instanceof Change.Content && inode != null && !inode.isRemoved() && there == null) {
      return null;
    }
    step.tree().beginMove();
    Recording rested =
        step.finish(change, intent.directory(), null, () -> complete(change, intent, inode, there));
    Stat now = inode == null || there == null || !isUnchanged(inode, there) ? null : atHome(inode);
    return now == null || inode == null ? rested : Step.seen(inode.number(), now).and(rested);
  }

  /** Whether no other program has changed the result. */
  private static boolean isUnchanged(Inode inode, Stat there) {
    Stat seen = inode.seen();
    return seen != null && seen.hasSameContent(there);
  }

  /** The node under its name at the source; null if it is not there. */
  private @Nullable Stat atHome(Inode inode) throws FsException {
    try (SourceTree.Directory directory = step.openIfThere(inode.homeParent())) {
      Stat there = directory == null ? null : Step.find(directory, inode.homeName());
      Stat seen = inode.seen();
      return there != null && seen != null && seen.isSameFile(there) ? there : null;
    }
  }

  private void complete(Change change, Intent intent, @Nullable Inode inode, @Nullable Stat there)
      throws FsException {
    if (inode != null && there != null) {
      completeNode(change, intent, inode, there);
    }
    Inode other = change.other() == 0 ? null : state.find(change.other());
    if (other != null && other.hasHome() && atHome(other) != null) {
      touch(other);
    }
    for (long number : directories(change, intent, inode)) {
      try (SourceTree.Directory directory = step.openIfThere(number)) {
        if (directory != null) {
          step.sync(directory);
        }
      }
    }
  }

  private void completeNode(Change change, Intent intent, Inode inode, Stat there)
      throws FsException {
    if (change instanceof Change.Rename) {
      touch(inode);
      return;
    }
    if (!intent.isOf(there)) {
      return;
    }
    try (SourceTree.Directory directory = step.open(inode.homeParent());
        SourceTree.Directory node = directory.node(inode.homeName(), there)) {
      if (change instanceof Change.Content content && isUnchanged(inode, there)) {
        agree(node, content);
      } else if (change instanceof Change.Made made) {
        setAttributes(node, made, true);
      }
    }
  }

  private void touch(Inode inode) throws FsException {
    Stat seen = inode.seen();
    if (seen == null) {
      return;
    }
    try (SourceTree.Directory directory = step.open(inode.homeParent());
        SourceTree.Directory node = directory.node(inode.homeName(), seen)) {
      step.times().touchMoved(node, inode.number());
    }
  }

  private Set<Long> directories(Change change, Intent intent, @Nullable Inode inode)
      throws FsException {
    Set<Long> directories = new LinkedHashSet<>();
    directories.add(intent.directory());
    change.names().forEach(name -> directories.add(name.directory()));
    if (inode != null) {
      try (State.Held held = state.hold()) {
        step.homes().all(inode).forEach(home -> directories.add(home.directory()));
      }
    }
    return directories;
  }

  /**
   * Sets the attributes of an existing file. Changes of them may be made together with the content,
   * or be later than the attempt that copied it.
   */
  void agree(SourceTree.Directory node, Change.Content change) throws FsException {
    try (OutputCalls.Acting acting = step.actors().as(change)) {
      attributes.set(node, change.attributes(), acting);
    }
  }

  /**
   * Sets the attributes of a new node other than a regular file.
   *
   * @param isOwn false if the source has owners of its own, or if another user may have replaced it
   */
  void setAttributes(SourceTree.Directory node, Change.Made change, boolean isOwn)
      throws FsException {
    Attributes wanted = change.attributes();
    try (OutputCalls.Acting acting = step.actors().as(change)) {
      if (!isOwn) {
        attributes.setAsActor(node, wanted);
      } else if (wanted.type() == FileType.DIRECTORY) {
        attributes.setRights(node, wanted, acting);
      } else {
        attributes.set(node, wanted, acting);
      }
    }
    step.times().touchMoved(node, change.inode());
  }
}
