package io.pmfs.writable.data;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.NameRow;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.tree.Extended;
import java.util.Map;

/** Records the contents of files in the journal. Thread-safe. */
@SuppressWarnings("try")
final class Announcer {
  private final State state;
  private final Extended extended;

  Announcer(State state, Extended extended) {
    this.state = state;
    this.extended = extended;
  }

  /**
   * Announces the present content of a locked file.
   *
   * @return whether it was new
   */
  boolean announce(OutputFile file, Caller caller) throws FsException {
    Inode before = state.inode(file.number());
    if (before.isRemoved() || (!before.is(Inode.WRITING) && before.is(Inode.ANNOUNCED))) {
      return false;
    }
    if (!file.isEmpty()) {
      file.load(before);
      file.recount();
    }
    try (State.Held held = state.hold()) {
      Inode inode = state.inode(file.number());
      if (inode.isRemoved()) {
        return false;
      }
      State.Update update = state.update();
      Map<FileName, byte[]> attributes =
          inode.is(Inode.XATTRS) ? extended.changed(file.number()) : Map.of();
      announce(update, file, inode, caller, attributes);
      update.commit();
    }
    file.announced();
    return true;
  }

  /** Announces within an update; the caller holds the state's lock and commits. */
  private void announce(
      State.Update update,
      OutputFile file,
      Inode inode,
      Caller caller,
      Map<FileName, byte[]> attributes)
      throws FsException {
    boolean isFirst = !inode.is(Inode.ANNOUNCED);
    boolean wasWritten = inode.is(Inode.WRITING);
    Attributes now = wasWritten ? file.attributes(inode) : inode.attributes();
    long sequence = update.nextSequence();
    long size = now.size();
    long generation = size == 0 ? 0 : inode.generation();
    if (isFirst) {
      update.name(
          inode.parent(), inode.name(), new NameRow(inode.number(), inode.type(), sequence, true));
      update.put(update.inode(inode.parent()).withChange(sequence));
    }
    if (generation != 0) {
      DataRow row = state.data(inode.number(), generation);
      if (row == null) {
        throw new FsException(Errno.EIO, "no data file of inode " + inode.number());
      }
      update.data(inode.number(), generation, row.withWaiting(row.waiting() + 1));
    }
    update.put(
        inode
            .with(now)
            .withContent(sequence, size)
            .withFlag(Inode.ANNOUNCED, true)
            .withFlag(Inode.WRITING, false));
    update.delete(Tables.WRITING, Tables.key(inode.number()));
    update.journal(
        new Change.Content(
            caller.head(sequence, inode.number(), state.millis()),
            isFirst ? new At(inode.parent(), inode.name()) : null,
            false,
            generation,
            size,
            now,
            isFirst && !attributes.isEmpty() ? FileName.of(Extended.encode(attributes)) : null));
  }
}
