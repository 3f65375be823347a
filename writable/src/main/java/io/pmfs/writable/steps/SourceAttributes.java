package io.pmfs.writable.steps;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.tree.Extended;
import io.pmfs.writable.tree.SourceTree;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sets what a file of the source has beside its data, in the order and as the user by which the
 * source takes it. Safe for use by many threads.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
final class SourceAttributes {
  private static final Logger log = LoggerFactory.getLogger(SourceAttributes.class);

  private static final int PERMISSIONS = 07777;
  private static final int SET_GROUP_ID = 02000;

  private final OutputCalls calls;
  private final Actors actors;

  SourceAttributes(OutputCalls calls, Actors actors) {
    this.calls = calls;
    this.actors = actors;
  }

  /** A call at the source. */
  interface Call {
    void make() throws FsException;
  }

  /** Makes a call as the writer, who may change a file, but perhaps not its directory. */
  void asWriter(Change.Content change, Call call) throws FsException {
    try (OutputCalls.Acting acting = actors.as(change)) {
      call.make();
      return;
    } catch (FsException e) {
      if (e.errno() != Errno.EACCES && e.errno() != Errno.EPERM) {
        throw e;
      }
    }
    call.make();
  }

  /** Sets what an announced file has beside its data. */
  void setAnnounced(
      SourceTree.Directory directory,
      FileName name,
      Change.Content change,
      OutputCalls.Acting acting)
      throws FsException {
    FileName extended = change.extended();
    if (extended != null) {
      for (Map.Entry<FileName, byte[]> attribute : Extended.decode(extended.bytes()).entrySet()) {
        setExtended(directory, name, attribute.getKey(), attribute.getValue());
      }
    }
    set(directory, name, change.attributes(), acting);
  }

  void setExtended(SourceTree.Directory directory, FileName name, FileName attribute, byte[] value)
      throws FsException {
    try {
      calls.setExtendedAttribute(directory.file(), name, attribute, value);
    } catch (FsException e) {
      switch (e.errno()) {
        case EPERM, EINVAL, EOPNOTSUPP, ENAMETOOLONG, E2BIG, ERANGE ->
            log.warn("the source cannot keep {} of {}: {}", attribute, name, e.getMessage());
        default -> throw e;
      }
    }
  }

  void giveAway(SourceTree.Directory directory, FileName name, Attributes wanted)
      throws FsException {
    try {
      calls.chown(directory.file(), name, wanted.uid(), wanted.gid());
    } catch (FsException e) {
      if (e.errno() != Errno.EPERM && e.errno() != Errno.EINVAL) {
        throw e;
      }
      log.debug("the source keeps the owner of {}: {}", name, e.getMessage());
    }
  }

  /**
   * Sets the mode. Linux drops the set-group-ID bit, without an error, for a user who is not in the
   * group. A writer may be in more groups than its user, and the mount's kernel has allowed the
   * bit: so the daemon sets it.
   */
  void setMode(
      SourceTree.Directory directory, FileName name, Attributes wanted, OutputCalls.Acting acting)
      throws FsException {
    int mode = wanted.mode() & PERMISSIONS;
    calls.chmod(directory.file(), name, mode);
    if ((mode & SET_GROUP_ID) != 0
        && (directory.status(name).attributes().mode() & SET_GROUP_ID) == 0) {
      acting.close();
      calls.chmod(directory.file(), name, mode);
    }
  }

  /**
   * Sets owner, rights and times, in the order in which each leaves the others as they are. What
   * the source never takes does not keep the content from it.
   */
  void set(
      SourceTree.Directory directory, FileName name, Attributes wanted, OutputCalls.Acting acting)
      throws FsException {
    setRights(directory, name, wanted, acting);
    setTimes(directory, name, wanted, acting);
  }

  /** Sets owner and mode. */
  void setRights(
      SourceTree.Directory directory, FileName name, Attributes wanted, OutputCalls.Acting acting)
      throws FsException {
    Attributes there = directory.status(name).attributes();
    if (there.uid() != wanted.uid() || there.gid() != wanted.gid()) {
      // Only root gives files away; the writer need not be.
      acting.close();
      giveAway(directory, name, wanted);
      there = directory.status(name).attributes();
    }
    if (wanted.type() != FileType.SYMBOLIC_LINK
        && ((there.mode() ^ wanted.mode()) & PERMISSIONS) != 0) {
      setIfTaken("mode", name, acting, () -> setMode(directory, name, wanted, acting));
    }
  }

  void setTimes(
      SourceTree.Directory directory, FileName name, Attributes wanted, OutputCalls.Acting acting)
      throws FsException {
    setIfTaken(
        "times",
        name,
        acting,
        () ->
            calls.setTimes(directory.file(), name, wanted.accessTime(), wanted.modificationTime()));
  }

  /** Makes a call as the writer, then as the daemon, and then does without it. */
  private static void setIfTaken(String what, FileName name, OutputCalls.Acting acting, Call call)
      throws FsException {
    try {
      call.make();
      return;
    } catch (FsException e) {
      if (e.errno() != Errno.EPERM && e.errno() != Errno.EACCES) {
        throw e;
      }
    }
    // Only its owner sets the times of a file that others may write.
    acting.close();
    try {
      call.make();
    } catch (FsException e) {
      if (e.errno() != Errno.EPERM) {
        throw e;
      }
      log.debug("the source keeps the {} of {}: {}", what, name, e.getMessage());
    }
  }
}
