package io.pmfs.fuse;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.protocol.ChangeProtocol;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.KernelReply;
import io.pmfs.fuse.protocol.KernelRequest;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.system.Posix;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Translates each request into operations of the file system, and their results into replies. The
 * parts of a {@link NodeNumber} persist, so FORGET needs no bookkeeping. Thread-safe for workers
 * with separate requests and replies.
 */
final class KernelOperations implements RequestHandler {
  private static final FileName PROBE = FileName.of(Bridge.PROBE);

  /** Listing offsets start after . and .. . */
  private static final int DOTS = 2;

  private static final long MAX_INODE = 1L << 46;

  private final PmfsFileSystem fileSystem;
  private final long validSeconds;
  private final @Nullable BackingFiles backing;
  private final Negotiation negotiation;
  private final AccessRule rule;

  /**
   * Operations of one session.
   *
   * @param validSeconds how long the kernel may keep names and attributes
   * @param backing for passthrough; null for the page-cache mode
   * @param offerable the INIT flags to accept if the kernel offers them; all except in tests
   * @param backgroundMax how many background requests, such as nearly all reads, may be in progress
   * @param rule for access-control lists
   */
  KernelOperations(
      PmfsFileSystem fileSystem,
      long validSeconds,
      @Nullable BackingFiles backing,
      long offerable,
      int backgroundMax,
      AccessRule rule) {
    this.fileSystem = fileSystem;
    this.backing = backing;
    this.validSeconds = validSeconds;
    this.rule = rule;
    this.negotiation =
        new Negotiation(rule.wanted(Negotiation.READING), offerable, backgroundMax, backing);
  }

  @Override
  public Negotiation negotiation() {
    return negotiation;
  }

  /** The size that the kernel requires: FUSE_MIN_READ_BUFFER, 8 KiB. */
  @Override
  public int requestBytes() {
    return KernelProtocol.MIN_REQUEST_BYTES;
  }

  @Override
  public boolean mayEndEarly(Opcode opcode) {
    return switch (opcode) {
      case READ,
          LOOKUP,
          GETATTR,
          READDIRPLUS,
          READDIR,
          LSEEK,
          READLINK,
          GETXATTR,
          LISTXATTR,
          STATFS,
          STATX,
          OPEN ->
          true;
      default -> false;
    };
  }

  @Override
  public void answer(Opcode opcode, KernelRequest request, KernelReply reply) throws FsException {
    switch (opcode) {
      case READ -> read(request, reply);
      case LOOKUP -> lookup(request, reply);
      case GETATTR -> getattr(request, reply);
      case READDIRPLUS -> readdir(request, reply, true);
      case READDIR -> readdir(request, reply, false);
      case LSEEK -> lseek(request, reply);
      case READLINK -> sendBytes(fileSystem.readSymbolicLink(inode(request)).bytes(), reply);
      case GETXATTR -> getxattr(request, reply);
      case LISTXATTR -> listxattr(request, reply);
      case STATFS -> statfs(reply);
      case STATX -> statx(request, reply);
      case INIT -> init(request, reply);
      case FORGET, BATCH_FORGET, INTERRUPT -> reply.noAnswer();
      // ENOSYS once: from then on the kernel opens files and directories without asking and caches
      // their contents.
      case OPEN -> open(request, reply);
      case OPENDIR -> opendir(reply);
      case FLUSH, FSYNC, FSYNCDIR, SYNCFS, ACCESS, COPY_FILE_RANGE_64 -> reply.fail(Errno.ENOSYS);
      case RELEASE -> {
        long generation = request.longAt(ChangeProtocol.HANDLE);
        reply.send(0);
        // Not earlier: a request whose answer is lost with this process is resent to the next one.
        if (backing != null) {
          backing.release(inode(request), generation);
        }
      }
      case RELEASEDIR, DESTROY -> reply.send(0);
      case IOCTL -> reply.fail(Errno.ENOTTY);
      case SETATTR,
          SYMLINK,
          MKNOD,
          MKDIR,
          UNLINK,
          RMDIR,
          RENAME,
          RENAME2,
          LINK,
          WRITE,
          SETXATTR,
          REMOVEXATTR,
          CREATE,
          FALLOCATE,
          COPY_FILE_RANGE,
          TMPFILE ->
          reply.fail(Errno.EROFS);
    }
  }

  private void init(KernelRequest request, KernelReply reply) throws FsException {
    negotiation.answer(request, reply);
    if (negotiation.isNegotiated() && negotiation.appliesAccessLists()) {
      fileSystem.accessLists().applyByKernel();
    }
  }

  private static long inode(KernelRequest request) {
    return NodeNumber.inode(request.inode());
  }

  /** Fails with ESTALE if the file is of another generation: the kernel then looks up its name. */
  private void requireCurrent(KernelRequest request) throws FsException {
    fileSystem.requireGeneration(inode(request), NodeNumber.generation(request.inode()));
  }

  /** The inode with the mode that the kernel sees. */
  private Inode attributes(KernelRequest request) throws FsException {
    Inode inode = fileSystem.inode(inode(request));
    requireCurrent(request); // now, because they may be those of the next generation
    return shown(inode);
  }

  /**
   * Writes a struct fuse_entry_out.
   *
   * @param verified whether to return false if only another node has described the file so far
   */
  private boolean putEntry(ByteBuffer out, int at, long number, boolean verified)
      throws FsException {
    byte generation;
    Inode inode;
    do {
      generation = fileSystem.generation(number);
      inode = verified ? fileSystem.verifiedInode(number) : fileSystem.inode(number);
      if (inode == null) {
        return false;
      }
    } while (generation != fileSystem.generation(number));
    KernelProtocol.putEntry(out, at, NodeNumber.of(number, generation), shown(inode), validSeconds);
    return true;
  }

  private Inode shown(Inode inode) throws FsException {
    return rule == AccessRule.MODES || negotiation.appliesAccessLists()
        ? inode
        : fileSystem.accessLists().withLeastRights(inode);
  }

  /**
   * ENOSYS makes the kernel open all further files without asking; any other answer makes it ask
   * each time.
   */
  private void open(KernelRequest request, KernelReply reply) throws FsException {
    boolean isAsked = fileSystem.needsOpens();
    if (!isAsked && (backing == null || backing.leavesOpensToKernel())) {
      throw new FsException(Errno.ENOSYS, "open");
    }
    long inode = inode(request);
    fileSystem.open(inode, NodeNumber.generation(request.inode()));
    long generation = Byte.toUnsignedLong(NodeNumber.generation(request.inode()));
    if (backing == null) {
      sendOpened(reply, generation, BackingFiles.NONE);
      return;
    }
    int id = backing.open(inode, generation, request.pid());
    try {
      requireCurrent(request);
      if (id == BackingFiles.NONE && !isAsked && backing.leavesOpensToKernel()) {
        throw new FsException(Errno.ENOSYS, "open");
      }
      sendOpened(reply, generation, id);
    } catch (Throwable e) {
      backing.release(inode, generation);
      throw e;
    }
    if (id != BackingFiles.NONE) {
      backing.countLeft();
    }
  }

  /** The handle, which the kernel returns when it closes the file, is the generation. */
  private static void sendOpened(KernelReply reply, long generation, int id) throws FsException {
    ByteBuffer out = reply.body();
    out.putLong(KernelReply.BODY, generation);
    out.putInt(
        KernelReply.BODY + 8,
        id == BackingFiles.NONE
            ? KernelProtocol.FOPEN_KEEP_CACHE
            : KernelProtocol.FOPEN_PASSTHROUGH);
    out.putInt(KernelReply.BODY + 12, id);
    reply.send(KernelProtocol.OPEN_OUT_SIZE);
  }

  /** Kernels before 5.1 always ask for directories: they would return ENOSYS to the caller. */
  private void opendir(KernelReply reply) throws FsException {
    if (negotiation.leavesOpendirToKernel()) {
      throw new FsException(Errno.ENOSYS, "opendir");
    }
    KernelProtocol.zero(reply.body(), KernelReply.BODY, KernelProtocol.OPEN_OUT_SIZE);
    reply
        .body()
        .putInt(
            KernelReply.BODY + 8, KernelProtocol.FOPEN_KEEP_CACHE | KernelProtocol.FOPEN_CACHE_DIR);
    reply.send(KernelProtocol.OPEN_OUT_SIZE);
  }

  private void lookup(KernelRequest request, KernelReply reply) throws FsException {
    FileName name = request.nameAt(KernelProtocol.IN_HEADER_SIZE);
    ByteBuffer out = reply.body();
    DirectoryEntry entry = fileSystem.findIfPresent(directory(request), name);
    if (entry == null) {
      KernelProtocol.putNoEntry(out, KernelReply.BODY, validSeconds);
    } else {
      putEntry(out, KernelReply.BODY, entry.inode(), false);
    }
    reply.send(KernelProtocol.ENTRY_OUT_SIZE);
  }

  /** Inode numbers are assigned in sequence: a number above the last one was never assigned. */
  private static long directory(KernelRequest request) throws FsException {
    long inode = request.inode();
    if (inode < 1 || inode > MAX_INODE) {
      throw new FsException(Errno.ESTALE, "inode " + inode);
    }
    return inode;
  }

  private void getattr(KernelRequest request, KernelReply reply) throws FsException {
    Inode inode = attributes(request);
    KernelProtocol.putAttributesReply(reply.body(), KernelReply.BODY, inode, validSeconds);
    reply.send(KernelProtocol.ATTR_OUT_SIZE);
  }

  private void statx(KernelRequest request, KernelReply reply) throws FsException {
    Inode inode = attributes(request);
    KernelProtocol.putStatx(reply.body(), KernelReply.BODY, inode, validSeconds);
    reply.send(KernelProtocol.STATX_OUT_SIZE);
  }

  private void read(KernelRequest request, KernelReply reply) throws FsException {
    long offset = request.longAt(KernelProtocol.READ_OFFSET);
    int size = request.intAt(KernelProtocol.READ_SIZE);
    if (size < 0 || size > reply.bodyLimit()) {
      throw new FsException(Errno.EINVAL, "invalid read size: " + Integer.toUnsignedString(size));
    }
    long inode = inode(request);
    byte generation = NodeNumber.generation(request.inode());
    try {
      fileSystem.read(inode, offset, size, reply, generation);
    } catch (FsException e) {
      if (fileSystem.generation(inode) != generation) {
        reply.forgetAttributes(request.inode());
      }
      throw e;
    }
    reply.sendCollected();
  }

  /**
   * The kernel asks only for data and holes, in every read mode, and handles other seeks itself.
   */
  private void lseek(KernelRequest request, KernelReply reply) throws FsException {
    long offset = request.longAt(KernelProtocol.LSEEK_OFFSET);
    int whence = request.intAt(KernelProtocol.LSEEK_WHENCE);
    long found =
        switch (whence) {
          case Posix.SEEK_DATA -> fileSystem.seekData(inode(request), offset);
          case Posix.SEEK_HOLE -> fileSystem.seekHole(inode(request), offset);
          default -> throw new FsException(Errno.EINVAL, "invalid whence: " + whence);
        };
    requireCurrent(request);
    reply.body().putLong(KernelReply.BODY, found);
    reply.send(KernelProtocol.LSEEK_OUT_SIZE);
  }

  private void readdir(KernelRequest request, KernelReply reply, boolean plus) throws FsException {
    long offset = request.longAt(KernelProtocol.READ_OFFSET);
    int size = request.intAt(KernelProtocol.READ_SIZE);
    if (size < 0 || offset < 0) {
      throw new FsException(Errno.EINVAL, "invalid listing: " + size + " bytes from " + offset);
    }
    Listing listing = new Listing(reply, Math.min(size, reply.bodyLimit()), plus);
    long directory = directory(request);
    if (offset < 1 && !listing.addDots(directory, DOT, 1)) {
      listing.send();
      return;
    }
    if (offset < DOTS && !listing.addDots(directory, DOT_DOT, DOTS)) {
      listing.send();
      return;
    }
    fileSystem.list(directory, Math.max(0, offset - DOTS), listing::add);
    listing.send();
  }

  private static final FileName DOT = FileName.of(".");
  private static final FileName DOT_DOT = FileName.of("..");

  /** Collects as many directory entries as fit. */
  private final class Listing {
    private final KernelReply reply;
    private final ByteBuffer out;
    private final int limit;
    private final int prefix;
    private int size;

    Listing(KernelReply reply, int limit, boolean plus) {
      this.reply = reply;
      this.out = reply.body(limit);
      this.limit = limit;
      this.prefix = plus ? KernelProtocol.ENTRY_OUT_SIZE : 0;
    }

    /** In READDIRPLUS, a node number of zero means that the entry is not a lookup. */
    boolean addDots(long inode, FileName name, long nextOffset) {
      if (size + prefix + KernelProtocol.direntSize(name.size()) > limit) {
        return false;
      }
      if (prefix > 0) {
        KernelProtocol.zero(out, KernelReply.BODY + size, prefix);
      }
      put(inode, name, FileType.DIRECTORY, nextOffset);
      return true;
    }

    boolean add(DirectoryEntry entry) {
      if (size + prefix + KernelProtocol.direntSize(entry.name().size()) > limit) {
        return false;
      }
      if (prefix > 0) {
        try {
          if (!putEntry(out, KernelReply.BODY + size, entry.inode(), true)) {
            // Compared when looked up: most readers of a directory need the attributes of few
            // files.
            KernelProtocol.zero(out, KernelReply.BODY + size, prefix);
          }
        } catch (FsException e) {
          // List the name anyway; a lookup returns the error.
          KernelProtocol.zero(out, KernelReply.BODY + size, prefix);
        }
      }
      put(entry.inode(), entry.name(), entry.type(), entry.position() + DOTS);
      return true;
    }

    private void put(long inode, FileName name, FileType type, long nextOffset) {
      KernelProtocol.putDirent(
          out, KernelReply.BODY + size + prefix, inode, nextOffset, type.number(), name);
      size += prefix + KernelProtocol.direntSize(name.size());
    }

    void send() throws FsException {
      reply.send(size);
    }
  }

  private void statfs(KernelReply reply) throws FsException {
    KernelProtocol.putStatistics(reply.body(), KernelReply.BODY, fileSystem.statistics());
    reply.send(KernelProtocol.STATFS_OUT_SIZE);
  }

  private void getxattr(KernelRequest request, KernelReply reply) throws FsException {
    int size = request.intAt(KernelProtocol.XATTR_SIZE);
    FileName name = request.nameAt(KernelProtocol.XATTR_NAME);
    byte[] value =
        name.equals(PROBE) ? null : AccessRule.attribute(fileSystem, inode(request), name);
    if (value == null) {
      throw new FsException(Errno.ENODATA, name.toString());
    }
    sendExtended(value, size, reply);
  }

  private void listxattr(KernelRequest request, KernelReply reply) throws FsException {
    int size = request.intAt(KernelProtocol.XATTR_SIZE);
    Map<FileName, byte[]> attributes = fileSystem.extendedAttributes(inode(request));
    sendExtended(AccessRule.names(attributes, request.uid()), size, reply);
  }

  /** The protocol of getxattr(2): a size of zero asks how much there is. */
  static void sendExtended(byte[] value, int size, KernelReply reply) throws FsException {
    if (size == 0) {
      KernelProtocol.zero(reply.body(), KernelReply.BODY, KernelProtocol.XATTR_OUT_SIZE);
      reply.body().putInt(KernelReply.BODY, value.length);
      reply.send(KernelProtocol.XATTR_OUT_SIZE);
    } else if (Integer.compareUnsigned(size, value.length) < 0) {
      reply.fail(Errno.ERANGE);
    } else {
      sendBytes(value, reply);
    }
  }

  static void sendBytes(byte[] bytes, KernelReply reply) throws FsException {
    reply.body().put(KernelReply.BODY, bytes);
    reply.send(bytes.length);
  }
}
