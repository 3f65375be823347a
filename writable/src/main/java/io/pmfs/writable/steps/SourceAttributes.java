package io.pmfs.writable.steps;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.tree.Extended;
import io.pmfs.writable.tree.SourceTree;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
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
  private static final int OTHERS = 077;

  private final OutputCalls calls;
  private final Actors actors;

  SourceAttributes(OutputCalls calls, Actors actors) {
    this.calls = calls;
    this.actors = actors;
  }

  interface Call {
    void make() throws FsException;
  }

  /**
   * Makes a call as the writer, who may change the file, but perhaps not its directory.
   *
   * @param isForeign whether root may not do it then
   */
  void asWriter(Change.Content change, boolean isForeign, Call call) throws FsException {
    try (OutputCalls.Acting acting = actors.as(change)) {
      call.make();
      return;
    } catch (FsException e) {
      if (isForeign || (e.errno() != Errno.EACCES && e.errno() != Errno.EPERM)) {
        throw e;
      }
    }
    call.make();
  }

  /**
   * Sets what a content brings. The rights of a file that it replaces may be in a list: until the
   * copy has that, only the owner has any.
   *
   * @param node the file, which the empty name is; so in all following methods
   */
  void setAnnounced(SourceTree.Directory node, Change.Content change, OutputCalls.Acting acting)
      throws FsException {
    FileName extended = change.extended();
    if (extended != null) {
      setExtended(node, Extended.decode(extended.bytes()));
    }
    Attributes wanted = change.attributes();
    set(node, change.isFirst() ? wanted : wanted.withMode(wanted.mode() & ~OTHERS), acting);
  }

  /** Sets all that another file has, and no list that the directory gives to new files. */
  void copyExtended(SourceTree.Directory node, Map<FileName, byte[]> attributes)
      throws FsException {
    setList(node, attributes.get(PosixAcl.ACCESS));
    Map<FileName, byte[]> others = new LinkedHashMap<>(attributes);
    others.remove(PosixAcl.ACCESS);
    setExtended(node, others);
  }

  /** Sets or removes the access-control list; fails if the source does not take it. */
  void setList(SourceTree.Directory node, byte @Nullable [] list) throws FsException {
    if (list != null) {
      calls.setExtendedAttribute(node.file(), PosixAcl.ACCESS, list);
    } else if (calls.extendedAttributes(node.file()).containsKey(PosixAcl.ACCESS)) {
      calls.removeExtendedAttribute(node.file(), PosixAcl.ACCESS);
    }
  }

  private void setExtended(SourceTree.Directory node, Map<FileName, byte[]> attributes)
      throws FsException {
    for (Map.Entry<FileName, byte[]> attribute : attributes.entrySet()) {
      setExtended(node, attribute.getKey(), attribute.getValue());
    }
  }

  /** Sets an attribute if the source can store it. */
  void setExtended(SourceTree.Directory node, FileName attribute, byte[] value) throws FsException {
    try {
      calls.setExtendedAttribute(node.file(), attribute, value);
    } catch (FsException e) {
      switch (e.errno()) {
        case EPERM, EINVAL, EOPNOTSUPP, ENAMETOOLONG, E2BIG, ERANGE ->
            log.warn("the source cannot store {}: {}", attribute, e.getMessage());
        default -> throw e;
      }
    }
  }

  private void giveAway(SourceTree.Directory node, Attributes wanted) throws FsException {
    try {
      calls.chown(node.file(), wanted.uid(), wanted.gid());
    } catch (FsException e) {
      if (e.errno() != Errno.EPERM && e.errno() != Errno.EINVAL) {
        throw e;
      }
      log.debug("the source does not change an owner: {}", e.getMessage());
    }
  }

  /**
   * Sets the mode. Linux silently drops the set-group-ID bit for a user outside the group. The
   * mount's kernel has allowed the bit, and a process may have more groups than its user, so the
   * daemon sets it.
   */
  void setMode(SourceTree.Directory node, Attributes wanted, OutputCalls.Acting acting)
      throws FsException {
    int mode = wanted.mode() & PERMISSIONS;
    calls.chmod(node.file(), mode);
    if ((mode & SET_GROUP_ID) != 0 && (mode(node) & SET_GROUP_ID) == 0) {
      acting.close();
      calls.chmod(node.file(), mode);
    }
  }

  private static int mode(SourceTree.Directory node) throws FsException {
    return node.status(Inode.NO_NAME).attributes().mode();
  }

  /**
   * Sets owner, mode and times, in an order in which no call undoes another. A value that the
   * source does not accept does not stop the content.
   */
  void set(SourceTree.Directory node, Attributes wanted, OutputCalls.Acting acting)
      throws FsException {
    setRights(node, wanted, acting);
    setTimes(node, wanted, acting);
  }

  void setRights(SourceTree.Directory node, Attributes wanted, OutputCalls.Acting acting)
      throws FsException {
    Attributes there = node.status(Inode.NO_NAME).attributes();
    if (there.uid() != wanted.uid() || there.gid() != wanted.gid()) {
      // Only root can give files away; the writer may be another user.
      acting.close();
      giveAway(node, wanted);
      there = node.status(Inode.NO_NAME).attributes();
    }
    if (wanted.type() != FileType.SYMBOLIC_LINK
        && ((there.mode() ^ wanted.mode()) & PERMISSIONS) != 0) {
      setIfTaken("mode", acting, () -> setMode(node, wanted, acting));
    }
  }

  void setTimes(SourceTree.Directory node, Attributes wanted, OutputCalls.Acting acting)
      throws FsException {
    setIfTaken(
        "times",
        acting,
        () -> calls.setTimes(node.file(), wanted.accessTime(), wanted.modificationTime()));
  }

  /** Sets mode and times as far as the actor may: the node may be another user's. */
  void setAsActor(SourceTree.Directory node, Attributes wanted) throws FsException {
    if (wanted.type() != FileType.SYMBOLIC_LINK
        && ((mode(node) ^ wanted.mode()) & PERMISSIONS) != 0) {
      setIfTaken("mode", () -> calls.chmod(node.file(), wanted.mode() & PERMISSIONS));
    }
    setIfTaken(
        "times", () -> calls.setTimes(node.file(), wanted.accessTime(), wanted.modificationTime()));
  }

  private static void setIfTaken(String what, Call call) throws FsException {
    try {
      call.make();
    } catch (FsException e) {
      if (e.errno() != Errno.EPERM) {
        throw e;
      }
      log.debug("the source does not change {}: {}", what, e.getMessage());
    }
  }

  /** Makes a call as the writer, then as the daemon; ignores its failure after that. */
  private static void setIfTaken(String what, OutputCalls.Acting acting, Call call)
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
    setIfTaken(what, call);
  }
}
