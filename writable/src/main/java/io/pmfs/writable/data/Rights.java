package io.pmfs.writable.data;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.tree.Nodes;
import java.time.Instant;

/** Changes of attributes: rights, owners and times. Thread-safe. */
@SuppressWarnings("try")
public final class Rights {
  private static final int SET_USER_ID = 04000;
  private static final int SET_GROUP_ID = 02000;
  private static final int GROUP_EXECUTE = 010;
  private static final int PERMISSIONS = 07777;

  private final State state;
  private final Nodes nodes;
  private final OutputFiles files;

  public Rights(State state, Nodes nodes, OutputFiles files) {
    this.state = state;
    this.nodes = nodes;
    this.files = files;
  }

  /** Drops the set-id bits that Linux drops when an ordinary user makes a change. */
  public void clearSetId(Inode inode, Caller caller) throws FsException {
    Attributes attributes = inode.attributes();
    int mode = withoutSetId(attributes, attributes.mode(), attributes.gid(), caller);
    if (mode != attributes.mode()) {
      change(
          inode.number(),
          new NewAttributes(mode & PERMISSIONS, null, null, null, null, null, 0, false),
          caller.unasked());
    }
  }

  private int withoutSetId(Attributes before, int mode, int gid, Caller caller) {
    if (before.type() == FileType.DIRECTORY) {
      return mode;
    }
    int next = mode & ~SET_USER_ID;
    boolean drops =
        (mode & GROUP_EXECUTE) != 0
            || (caller.uid() != 0
                && !files.calls().isInGroup(caller.pid(), caller.uid(), caller.gid(), gid));
    return drops ? next & ~SET_GROUP_ID : next;
  }

  /** Changes everything but the size. */
  public Node change(long number, NewAttributes wanted, Caller caller) throws FsException {
    Inode inode = nodes.refresh(nodes.find(number));
    inode.protection().requireChangeable("inode " + number);
    if (!inode.isRegular()) {
      return nodes.shown(changeRecorded(number, wanted, caller));
    }
    try (OutputFiles.Locked locked = files.lock(number)) {
      OutputFile file = locked.file();
      file.load(state.inode(number));
      Inode next = changeRecorded(number, wanted, caller);
      if (next.is(Inode.WRITING)) {
        file.setTimes(next, wanted.modificationTime());
      }
      return nodes.shown(next);
    }
  }

  private Inode changeRecorded(long number, NewAttributes wanted, Caller caller)
      throws FsException {
    try (State.Held held = state.hold()) {
      Inode inode = state.inode(number);
      Attributes before = inode.attributes();
      Attributes after = changed(before, wanted, caller);
      int mask = mask(before, after, wanted);
      State.Update update = state.update();
      Inode next = inode.with(after);
      if (mask != 0 && inode.is(Inode.ANNOUNCED) && !inode.isRemoved()) {
        long sequence = update.nextSequence();
        update.journal(
            new Change.SetAttributes(caller.head(sequence, number, state.millis()), after, mask));
        next = next.withChange(sequence);
      }
      update.put(next);
      update.commit();
      return next;
    }
  }

  private static int mask(Attributes before, Attributes after, NewAttributes wanted) {
    int mask =
        before.mode() != after.mode() || wanted.mode() != null ? Change.SetAttributes.MODE : 0;
    if (wanted.uid() != null || wanted.gid() != null) {
      mask |= Change.SetAttributes.OWNER;
    }
    if (wanted.accessTime() != null || wanted.modificationTime() != null) {
      mask |= Change.SetAttributes.TIMES;
    }
    return mask;
  }

  /** The kernel sends no request when chown(2) leaves both owners as they are. */
  private static boolean isNothing(NewAttributes wanted) {
    return wanted.mode() == null
        && wanted.uid() == null
        && wanted.gid() == null
        && wanted.size() == null
        && wanted.accessTime() == null
        && wanted.modificationTime() == null;
  }

  private Attributes changed(Attributes before, NewAttributes wanted, Caller caller)
      throws FsException {
    Integer uid = wanted.uid();
    Integer gid = wanted.gid();
    Integer mode = wanted.mode();
    if (mode != null && before.type() == FileType.SYMBOLIC_LINK) {
      throw new FsException(Errno.EOPNOTSUPP, "mode of a symbolic link");
    }
    int nextMode =
        mode == null ? before.mode() : (before.mode() & ~PERMISSIONS) | (mode & PERMISSIONS);
    if ((wanted.clearSetId() || isNothing(wanted)) && mode == null) {
      nextMode = withoutSetId(before, nextMode, before.gid(), caller);
    }
    Instant access = wanted.accessTime();
    Instant modified = wanted.modificationTime();
    return before
        .withMode(nextMode)
        .withOwner(uid == null ? before.uid() : uid, gid == null ? before.gid() : gid)
        .withTimes(
            access == null ? before.accessTime() : access,
            modified == null ? before.modificationTime() : modified)
        .withChangeTime(state.now());
  }
}
