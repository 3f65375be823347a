package io.pmfs.fuse;

import io.pmfs.fs.AccessLists;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.UnmappedGroups;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.posix.FsException;
import java.io.ByteArrayOutputStream;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** How the kernel decides who may use a file: docs/decisions/0053. */
public enum AccessRule {
  /** By modes alone: only the user with the daemon's permissions at the source can enter. */
  MODES,

  /** By modes reduced to what access-control lists allow every user. */
  LEAST_MODES,

  /** By access-control lists, if the kernel agrees; else as {@link #LEAST_MODES}. */
  LISTS;

  private static final String TRUSTED = "trusted.";

  /**
   * The rule for a mount. Lists cost a request for each open, because the kernel does not cache
   * their absence for the root of a mount, so only sources with lists use them.
   *
   * @param lists of the source
   * @param othersEnter whether users other than the daemon's can enter the mount
   * @param isResumed whether another process started the session: the kernel keeps its rule
   */
  static AccessRule of(AccessLists lists, boolean othersEnter, boolean isResumed) {
    boolean isForRootAlone = !othersEnter && LibC.INSTANCE.geteuid() == 0;
    // The kernel would refuse lists with users or groups that the namespace of the mount lacks.
    if (isForRootAlone || UnmappedGroups.exist()) {
      return MODES;
    }
    boolean byKernel = isResumed ? lists.areAppliedByKernel() : lists.areFound();
    AccessRule rule = byKernel ? LISTS : othersEnter ? LEAST_MODES : MODES;
    if (rule != MODES) {
      lists.follow();
    }
    return rule;
  }

  /** The features that a session with this rule requests from the kernel. */
  Negotiation.Wanted wanted(Negotiation.Wanted otherwise) {
    return this == LISTS ? otherwise.withAccessLists() : otherwise;
  }

  /** An extended attribute of a file; null if it has none of that name. */
  public static byte @Nullable [] attribute(PmfsFileSystem fileSystem, long inode, FileName name)
      throws FsException {
    if (!name.equals(PosixAcl.ACCESS)) {
      return fileSystem.extendedAttributes(inode).get(name);
    }
    FileName list = fileSystem.accessList(inode);
    return list.size() == 0 ? null : list.bytes();
  }

  /**
   * The names of extended attributes as listxattr(2) returns them to a user: each ends with NUL.
   * Only root sees names of {@code trusted.}: the kernel hides their values, but leaves names to
   * the daemon.
   */
  public static byte[] names(Map<FileName, byte[]> attributes, long uid) {
    ByteArrayOutputStream names = new ByteArrayOutputStream();
    for (FileName name : attributes.keySet()) {
      if (uid == 0 || !name.toLatin1().startsWith(TRUSTED)) {
        names.writeBytes(name.bytes());
        names.write(0);
      }
    }
    return names.toByteArray();
  }
}
