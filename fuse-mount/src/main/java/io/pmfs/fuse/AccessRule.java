package io.pmfs.fuse;

import io.pmfs.fs.AccessLists;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.system.LibC;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.posix.FsException;
import java.io.ByteArrayOutputStream;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** By what the kernel decides who may use a file: docs/decisions/0053. */
enum AccessRule {
  /** Modes alone: only the user enters whose rights the daemon itself has at the source. */
  MODES,

  /** Modes that give nobody more rights than access-control lists do. */
  LEAST_MODES,

  /** Access-control lists, if the kernel agrees; else as {@link #LEAST_MODES}. */
  LISTS;

  private static final String TRUSTED = "trusted.";

  /**
   * The rule for a mount. Lists cost a request for each open, because the kernel does not keep the
   * answer for the root of a mount: only a source that has some is worth that.
   *
   * @param lists of the source
   * @param othersEnter whether other users than the daemon's enter the mount
   * @param isResumed whether another process began the session, whose rule the kernel keeps
   */
  static AccessRule of(AccessLists lists, boolean othersEnter, boolean isResumed) {
    boolean isForRootAlone = !othersEnter && LibC.INSTANCE.geteuid() == 0;
    if (isForRootAlone) {
      return MODES;
    }
    boolean byKernel = isResumed ? lists.areAppliedByKernel() : lists.areFound();
    AccessRule rule = byKernel ? LISTS : othersEnter ? LEAST_MODES : MODES;
    if (rule != MODES) {
      lists.follow();
    }
    return rule;
  }

  /** What a session with this rule wants of the kernel. */
  Negotiation.Wanted wanted(Negotiation.Wanted otherwise) {
    return this == LISTS ? otherwise.withAccessLists() : otherwise;
  }

  /** An extended attribute of a file; null if it has none of that name. */
  static byte @Nullable [] attribute(PmfsFileSystem fileSystem, long inode, FileName name)
      throws FsException {
    if (!name.equals(PosixAcl.ACCESS)) {
      return fileSystem.extendedAttributes(inode).get(name);
    }
    FileName list = fileSystem.accessLists().of(inode);
    return list.size() == 0 ? null : list.bytes();
  }

  /**
   * The names of extended attributes as listxattr(2) gives them to a user: each ends with NUL.
   * Those of {@code trusted.} are root's alone. The kernel, which keeps their values to itself,
   * leaves their names to us.
   */
  static byte[] names(Map<FileName, byte[]> attributes, long uid) {
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
