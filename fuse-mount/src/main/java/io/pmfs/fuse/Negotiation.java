package io.pmfs.fuse;

import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.KernelReply;
import io.pmfs.fuse.protocol.KernelRequest;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The version and the features of the protocol that a session and the kernel agree on (INIT). */
final class Negotiation {
  private static final Logger log = LoggerFactory.getLogger(Negotiation.class);

  /**
   * Never reached; above the congestion threshold, readers would send one request at a time instead
   * of reading ahead.
   */
  private static final short NEVER_CONGESTED = (short) 0xffff;

  private static final long ALL = -1;

  private static final long COMMON =
      KernelProtocol.ASYNC_READ
          | KernelProtocol.BIG_WRITES
          | KernelProtocol.DO_READDIRPLUS
          | KernelProtocol.PARALLEL_DIROPS
          | KernelProtocol.MAX_PAGES
          | KernelProtocol.INIT_EXT
          | KernelProtocol.HAS_RESEND;

  /**
   * For read-only sessions. They never write, but the kernel requires at least one page, and a
   * larger request buffer.
   */
  static final Wanted READING =
      new Wanted(
          COMMON
              | KernelProtocol.NO_OPEN_SUPPORT
              | KernelProtocol.CACHE_SYMLINKS
              | KernelProtocol.NO_OPENDIR_SUPPORT
              | KernelProtocol.EXPLICIT_INVAL_DATA,
          4096);

  /**
   * For writable sessions. The kernel drops cached pages of a file whose size or time changed,
   * because others may change it at the source. It handles locks itself, unless POSIX_LOCKS or
   * FLOCK_LOCKS is accepted.
   */
  static final Wanted WRITING =
      new Wanted(
          COMMON
              | KernelProtocol.ATOMIC_O_TRUNC
              | KernelProtocol.AUTO_INVAL_DATA
              // Attributes are valid only for a moment, so they are requested when a program needs
              // them.
              | KernelProtocol.READDIRPLUS_AUTO
              | KernelProtocol.ASYNC_DIO
              | KernelProtocol.HANDLE_KILLPRIV_V2,
          KernelProtocol.MAX_WRITE_BYTES);

  /**
   * The features that a kind of session requests.
   *
   * @param flags of INIT, accepted if the kernel offers them
   * @param maxWriteBytes the largest write that the kernel may send
   */
  record Wanted(long flags, int maxWriteBytes) {
    /** Adds access-control lists applied by the kernel. */
    Wanted withAccessLists() {
      return new Wanted(flags | KernelProtocol.POSIX_ACL, maxWriteBytes);
    }
  }

  private final Wanted wanted;
  private final long offerable;
  private final int backgroundMax;
  private final @Nullable BackingFiles backing;
  private volatile long taken;
  private volatile boolean negotiated;

  /**
   * A session that was not negotiated yet.
   *
   * @param offerable the flags to accept if the kernel offers them
   * @param backgroundMax how many background requests the kernel may have in progress
   * @param backing for passthrough; null for the page-cache mode
   */
  Negotiation(Wanted wanted, long offerable, int backgroundMax, @Nullable BackingFiles backing) {
    this.wanted = wanted;
    this.taken = wanted.flags();
    this.offerable = offerable;
    this.backgroundMax = backgroundMax;
    this.backing = backing;
  }

  /** Whether INIT was answered. */
  boolean isNegotiated() {
    return negotiated;
  }

  /** Whether a flag is accepted if the kernel offers it. */
  boolean isOfferable(long flag) {
    return (offerable & flag) != 0;
  }

  /** Whether the kernel can resend requests to another process. */
  boolean canResend() {
    return (taken & KernelProtocol.HAS_RESEND) != 0;
  }

  /**
   * Continues a session that another process negotiated. Which flags that process accepted is
   * unknown, but a kernel that can resend requests (6.9) also supports all other flags.
   * Access-control lists are requested in such a session only if that process accepted them.
   */
  void resume(boolean canResend) {
    taken = wanted.flags() & (canResend ? ALL : KernelProtocol.POSIX_ACL);
    negotiated = true;
  }

  /** Whether the kernel applies the access-control lists of files. */
  boolean appliesAccessLists() {
    return (taken & KernelProtocol.POSIX_ACL) != 0;
  }

  /** Whether the kernel opens directories without asking after an ENOSYS. */
  boolean leavesOpendirToKernel() {
    return (taken & KernelProtocol.NO_OPENDIR_SUPPORT) != 0;
  }

  /** Answers INIT. */
  void answer(KernelRequest request, KernelReply reply) throws FsException {
    int major = request.intAt(KernelProtocol.INIT_MAJOR);
    int minor = request.intAt(KernelProtocol.INIT_MINOR);
    if (major < KernelProtocol.MAJOR
        || (major == KernelProtocol.MAJOR && minor < KernelProtocol.OLDEST_MINOR)) {
      throw new FsException(Errno.EPROTO, "unsupported FUSE version " + major + "." + minor);
    }
    ByteBuffer out = reply.body();
    KernelProtocol.zero(out, KernelReply.BODY, KernelProtocol.INIT_OUT_SIZE);
    out.putInt(KernelReply.BODY, KernelProtocol.MAJOR);
    out.putInt(KernelReply.BODY + 4, KernelProtocol.MINOR);
    if (major > KernelProtocol.MAJOR) {
      // The kernel repeats the request in this version.
      reply.send(KernelProtocol.INIT_OUT_SIZE);
      return;
    }
    long offered = request.intAt(KernelProtocol.INIT_FLAGS) & 0xffffffffL;
    if ((offered & KernelProtocol.INIT_EXT) != 0) {
      offered |= (request.intAt(KernelProtocol.INIT_FLAGS2) & 0xffffffffL) << 32;
    }
    offered &= offerable;
    long flags =
        offered & (backing == null ? wanted.flags() : wanted.flags() | KernelProtocol.PASSTHROUGH);
    if (backing != null && (flags & KernelProtocol.PASSTHROUGH) == 0) {
      backing.setUnavailable("this kernel does not support it (6.9 and later do)");
    }
    log.info(
        "FUSE {}.{}, flags offered {}, accepted {}",
        major,
        minor,
        Long.toHexString(offered),
        Long.toHexString(flags));
    out.putInt(KernelReply.BODY + 8, request.intAt(KernelProtocol.INIT_READAHEAD));
    out.putInt(KernelReply.BODY + 12, (int) flags);
    out.putShort(KernelReply.BODY + 16, (short) backgroundMax);
    out.putShort(KernelReply.BODY + 18, NEVER_CONGESTED);
    out.putInt(KernelReply.BODY + 20, wanted.maxWriteBytes());
    out.putInt(KernelReply.BODY + 24, 1);
    out.putShort(KernelReply.BODY + 28, (short) KernelProtocol.MAX_READ_PAGES);
    out.putInt(KernelReply.BODY + 32, (int) (flags >>> 32));
    // Backing files must not be on another stacked file system.
    out.putInt(KernelReply.BODY + 36, (flags & KernelProtocol.PASSTHROUGH) == 0 ? 0 : 1);
    taken = flags;
    reply.send(KernelProtocol.INIT_OUT_SIZE);
    negotiated = true;
  }
}
