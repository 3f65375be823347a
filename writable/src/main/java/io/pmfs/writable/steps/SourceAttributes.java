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
 * Sets the attributes of files at the source, in the order and as the user that the source accepts.
 * Thread-safe.
 */
@SuppressWarnings("try")
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

  interface Call {
    void make() throws FsException;
  }

  /** Makes a call as the writer, who may change the file, but perhaps not its directory. */
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
            log.warn("the source cannot store {} of {}: {}", attribute, name, e.getMessage());
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
      log.debug("the source does not change the owner of {}: {}", name, e.getMessage());
    }
  }

  /**
   * Sets the mode. Linux silently drops the set-group-ID bit for a user outside the group. The
   * mount's kernel has allowed the bit, and a process may have more groups than its user, so the
   * daemon sets it.
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
   * Sets owner, mode and times, in an order in which no call undoes another. A value that the
   * source does not accept does not stop the content.
   */
  void set(
      SourceTree.Directory directory, FileName name, Attributes wanted, OutputCalls.Acting acting)
      throws FsException {
    setRights(directory, name, wanted, acting);
    setTimes(directory, name, wanted, acting);
  }

  void setRights(
      SourceTree.Directory directory, FileName name, Attributes wanted, OutputCalls.Acting acting)
      throws FsException {
    Attributes there = directory.status(name).attributes();
    if (there.uid() != wanted.uid() || there.gid() != wanted.gid()) {
      // Only root can give files away; the writer may be another user.
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

  /** Makes a call as the writer, then as the daemon; ignores its failure after that. */
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
    // Only the owner may set the times of a file that others can write.
    acting.close();
    try {
      call.make();
    } catch (FsException e) {
      if (e.errno() != Errno.EPERM) {
        throw e;
      }
      log.debug("the source does not change the {} of {}: {}", what, name, e.getMessage());
    }
  }
}
