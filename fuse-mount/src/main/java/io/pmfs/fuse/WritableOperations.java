package io.pmfs.fuse;

import static io.pmfs.fuse.protocol.KernelReply.BODY;

import io.pmfs.fuse.protocol.ChangeProtocol;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.KernelReply;
import io.pmfs.fuse.protocol.KernelRequest;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.system.Posix;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.Interrupts;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Translates each request into operations of a file system that can be changed, and their results
 * into replies. The kernel checks permissions, handles locks, and caches names and attributes only
 * for a moment. Thread-safe for workers with separate requests and replies.
 */
final class WritableOperations implements RequestHandler {
  private static final FileName PROBE = FileName.of(Bridge.PROBE);
  private static final int O_ACCMODE = 3;
  private static final int O_TRUNC = 0x200;
  private static final int O_APPEND = 0x400;
  private static final int SET_USER_ID = 04000;
  private static final int SET_GROUP_ID = 02000;
  private static final int GROUP_EXECUTE = 010;
  private static final int PERMISSIONS = 07777;

  private final WritableFileSystem fileSystem;
  private final Interrupts interrupts;
  private final long validSeconds;
  private final boolean writesDirectly;
  private final Negotiation negotiation;
  private final SeenVersions seen = new SeenVersions();

  /**
   * Operations of one session.
   *
   * @param validSeconds how long the kernel may keep names and attributes
   * @param writesDirectly whether new files may be written without the page cache ({@link
   *     DirectWrites})
   * @param offerable the INIT flags to accept if the kernel offers them; all except in tests
   * @param backgroundMax how many background requests the kernel may have in progress
   * @param rule for access-control lists, except {@link AccessRule#LEAST_MODES}
   */
  WritableOperations(
      WritableFileSystem fileSystem,
      long validSeconds,
      boolean writesDirectly,
      long offerable,
      int backgroundMax,
      AccessRule rule) {
    this.fileSystem = fileSystem;
    this.interrupts =
        fileSystem instanceof Interrupts.Holder holder ? holder.interrupts() : new Interrupts();
    this.validSeconds = validSeconds;
    this.writesDirectly = writesDirectly;
    this.negotiation =
        new Negotiation(rule.wanted(Negotiation.WRITING), offerable, backgroundMax, null);
  }

  @Override
  public Negotiation negotiation() {
    return negotiation;
  }

  /** A whole write with its headers. */
  @Override
  public int requestBytes() {
    return ChangeProtocol.WRITE_DATA + KernelProtocol.MAX_WRITE_BYTES;
  }

  @Override
  public void answer(Opcode opcode, KernelRequest request, KernelReply reply) throws FsException {
    long unique = request.unique();
    interrupts.begin(unique);
    try {
      dispatch(opcode, request, reply);
    } finally {
      interrupts.end(unique);
    }
  }

  private void dispatch(Opcode opcode, KernelRequest request, KernelReply reply)
      throws FsException {
    switch (opcode) {
      case READ -> read(request, reply);
      case WRITE -> write(request, reply);
      case LOOKUP -> lookup(request, reply);
      case GETATTR -> sendAttributes(fileSystem.attributes(request.inode()), reply);
      case SETATTR -> sendAttributes(setattr(request), reply);
      case STATX -> statx(request, reply);
      case READDIRPLUS -> readdir(request, reply, true);
      case READDIR -> readdir(request, reply, false);
      case OPEN -> open(request, reply);
      case CREATE -> create(request, reply);
      case TMPFILE -> createUnnamed(request, reply);
      case MKDIR, MKNOD, SYMLINK, LINK -> sendEntry(make(opcode, request), reply);
      case UNLINK, RMDIR, RENAME, RENAME2, SETXATTR, REMOVEXATTR -> {
        change(opcode, request);
        reply.send(0);
      }
      case FLUSH -> {
        fileSystem.flush(request.inode(), handle(request), caller(request));
        reply.send(0);
      }
      case FSYNC -> fsync(request, reply);
      case FSYNCDIR -> {
        fileSystem.fsyncDirectory(request.inode(), caller(request));
        reply.send(0);
      }
      // Before the answer: the kernel resends the request if this process dies in between.
      case RELEASE -> {
        fileSystem.release(request.inode(), handle(request));
        reply.send(0);
      }
      case FALLOCATE -> fallocate(request, reply);
      case COPY_FILE_RANGE, COPY_FILE_RANGE_64 -> copyRange(opcode, request, reply);
      case LSEEK -> lseek(request, reply);
      case READLINK ->
          KernelOperations.sendBytes(fileSystem.readSymbolicLink(request.inode()).bytes(), reply);
      case GETXATTR -> getxattr(request, reply);
      case LISTXATTR ->
          KernelOperations.sendExtended(
              AccessRule.names(fileSystem.extendedAttributes(request.inode()), request.uid()),
              request.intAt(KernelProtocol.XATTR_SIZE),
              reply);
      case STATFS -> {
        KernelProtocol.putStatistics(reply.body(), BODY, fileSystem.statistics());
        reply.send(KernelProtocol.STATFS_OUT_SIZE);
      }
      case INIT -> negotiation.answer(request, reply);
      case FORGET, BATCH_FORGET -> {
        reply.noAnswer(); // even if it is malformed
        forget(opcode, request);
      }
      case INTERRUPT -> {
        reply.noAnswer();
        interrupts.interrupt(request.longAt(KernelProtocol.IN_HEADER_SIZE));
      }
      case OPENDIR -> {
        KernelProtocol.zero(reply.body(), BODY, KernelProtocol.OPEN_OUT_SIZE);
        reply.send(KernelProtocol.OPEN_OUT_SIZE);
      }
      case RELEASEDIR, DESTROY -> reply.send(0);
      // The kernel checks permissions itself, and does not need SYNCFS here.
      case ACCESS, SYNCFS -> reply.fail(Errno.ENOSYS);
      case IOCTL -> reply.fail(Errno.ENOTTY);
    }
  }

  private static Caller caller(KernelRequest request) {
    return new Caller(
        request.number(), (int) request.uid(), (int) request.gid(), (int) request.pid());
  }

  private static long handle(KernelRequest request) throws FsException {
    return request.longAt(ChangeProtocol.HANDLE);
  }

  // ---- names

  private void lookup(KernelRequest request, KernelReply reply) throws FsException {
    if (KernelWorker.isHeartbeat(request)) {
      throw new FsException(Errno.ENAMETOOLONG, "the daemon's own check of its mount");
    }
    Node node = fileSystem.lookup(request.inode(), request.nameAt(KernelProtocol.IN_HEADER_SIZE));
    if (node == null) {
      KernelProtocol.putNoEntry(reply.body(), BODY, validSeconds);
      reply.send(KernelProtocol.ENTRY_OUT_SIZE);
    } else {
      sendEntry(node, reply);
    }
  }

  private Node make(Opcode opcode, KernelRequest request) throws FsException {
    long directory = request.inode();
    Caller caller = caller(request);
    switch (opcode) {
      case MKDIR -> {
        FileName name = request.nameAt(ChangeProtocol.MKDIR_NAME);
        int mode = request.intAt(ChangeProtocol.MKDIR_MODE) & PERMISSIONS;
        return fileSystem.mkdir(directory, name, mode, caller);
      }
      case MKNOD -> {
        FileName name = request.nameAt(ChangeProtocol.MKNOD_NAME);
        int mode = request.intAt(ChangeProtocol.MKNOD_MODE);
        long device = Integer.toUnsignedLong(request.intAt(ChangeProtocol.MKNOD_DEVICE));
        return fileSystem.mknod(directory, name, mode, device, caller);
      }
      case SYMLINK -> {
        FileName name = request.nameAt(KernelProtocol.IN_HEADER_SIZE);
        FileName target = request.nameAt(KernelProtocol.IN_HEADER_SIZE + name.size() + 1);
        return fileSystem.symlink(directory, name, target, caller);
      }
      default -> {
        FileName name = request.nameAt(ChangeProtocol.LINK_NAME);
        return fileSystem.link(request.longAt(ChangeProtocol.LINK_INODE), directory, name, caller);
      }
    }
  }

  private void change(Opcode opcode, KernelRequest request) throws FsException {
    long inode = request.inode();
    Caller caller = caller(request);
    switch (opcode) {
      case UNLINK ->
          fileSystem.unlink(inode, request.nameAt(KernelProtocol.IN_HEADER_SIZE), caller);
      case RMDIR -> fileSystem.rmdir(inode, request.nameAt(KernelProtocol.IN_HEADER_SIZE), caller);
      case RENAME -> rename(request, ChangeProtocol.RENAME_NAMES, 0);
      case RENAME2 ->
          rename(
              request, ChangeProtocol.RENAME2_NAMES, request.intAt(ChangeProtocol.RENAME2_FLAGS));
      case SETXATTR -> {
        FileName name = request.nameAt(ChangeProtocol.SETXATTR_NAME);
        byte[] value = new byte[valueSize(request)];
        request.bytesAt(ChangeProtocol.SETXATTR_NAME + name.size() + 1, value.length).get(value);
        int flags = request.intAt(ChangeProtocol.SETXATTR_FLAGS);
        fileSystem.setExtendedAttribute(inode, name, value, flags, caller);
      }
      default ->
          fileSystem.removeExtendedAttribute(
              inode, request.nameAt(KernelProtocol.IN_HEADER_SIZE), caller);
    }
  }

  private static int valueSize(KernelRequest request) throws FsException {
    int size = request.intAt(ChangeProtocol.SETXATTR_SIZE);
    if (size < 0 || size > KernelProtocol.MAX_WRITE_BYTES) {
      throw new FsException(Errno.E2BIG, "an attribute of " + Integer.toUnsignedString(size));
    }
    return size;
  }

  private void rename(KernelRequest request, int names, int flags) throws FsException {
    FileName name = request.nameAt(names);
    FileName newName = request.nameAt(names + name.size() + 1);
    fileSystem.rename(
        request.inode(),
        name,
        request.longAt(ChangeProtocol.RENAME_DIRECTORY),
        newName,
        flags,
        caller(request));
  }

  private void sendEntry(Node node, KernelReply reply) throws FsException {
    KernelProtocol.putEntry(reply.body(), BODY, node.inode(), node.attributes(), validSeconds);
    reply.send(KernelProtocol.ENTRY_OUT_SIZE);
  }

  private void readdir(KernelRequest request, KernelReply reply, boolean plus) throws FsException {
    long offset = request.longAt(KernelProtocol.READ_OFFSET);
    int size = request.intAt(KernelProtocol.READ_SIZE);
    if (size < 0 || offset < 0) {
      throw new FsException(Errno.EINVAL, "invalid listing: " + size + " bytes from " + offset);
    }
    int limit = Math.min(size, reply.bodyLimit());
    new WritableListing(fileSystem, reply, limit, plus ? validSeconds : WritableListing.NO_ENTRIES)
        .send(request.inode(), offset);
  }

  private void forget(Opcode opcode, KernelRequest request) throws FsException {
    if (opcode == Opcode.FORGET) {
      fileSystem.forget(request.inode(), request.longAt(ChangeProtocol.FORGET_LOOKUPS));
      return;
    }
    int count = request.intAt(ChangeProtocol.BATCH_COUNT);
    for (int i = 0; i < count; i++) {
      int at = ChangeProtocol.BATCH_FIRST + i * ChangeProtocol.FORGET_ONE_SIZE;
      fileSystem.forget(request.longAt(at), request.longAt(at + Long.BYTES));
    }
  }

  // ---- open files

  private void open(KernelRequest request, KernelReply reply) throws FsException {
    int flags = request.intAt(ChangeProtocol.OPEN_FLAGS);
    long inode = request.inode();
    Opened opened = fileSystem.open(inode, flags, caller(request));
    if ((flags & O_TRUNC) != 0
        && killsSetId(request, ChangeProtocol.OPEN_OPEN_FLAGS)
        && hasSetId(opened.node().attributes().mode())) {
      clearSetId(inode, opened.handle(), request);
    }
    boolean isReader = (flags & O_ACCMODE) == 0;
    int answer =
        (isReader ? KernelProtocol.FOPEN_NOFLUSH : 0)
            | (seen.isLast(inode, opened.node().attributes())
                ? KernelProtocol.FOPEN_KEEP_CACHE
                : 0);
    putOpen(reply.body(), BODY, opened.handle(), answer);
    reply.send(KernelProtocol.OPEN_OUT_SIZE);
  }

  private static boolean killsSetId(KernelRequest request, int offset) throws FsException {
    return (request.intAt(offset) & ChangeProtocol.OPEN_KILL_SUIDGID) != 0;
  }

  private static boolean hasSetId(int mode) {
    int groupExecutes = SET_GROUP_ID | GROUP_EXECUTE;
    return (mode & SET_USER_ID) != 0 || (mode & groupExecutes) == groupExecutes;
  }

  /** Truncating a file drops the bits, even if the open itself did not. */
  private void clearSetId(long inode, long handle, KernelRequest request) throws FsException {
    fileSystem.setAttributes(
        inode,
        new WritableFileSystem.NewAttributes(null, null, null, 0L, null, null, handle, true),
        caller(request).unasked());
  }

  private void create(KernelRequest request, KernelReply reply) throws FsException {
    Opened opened =
        fileSystem.create(
            request.inode(),
            request.nameAt(ChangeProtocol.CREATE_NAME),
            request.intAt(ChangeProtocol.CREATE_MODE) & PERMISSIONS,
            request.intAt(ChangeProtocol.CREATE_FLAGS),
            caller(request));
    sendCreated(opened, reply);
  }

  private void createUnnamed(KernelRequest request, KernelReply reply) throws FsException {
    Opened opened =
        fileSystem.createUnnamed(
            request.inode(),
            request.intAt(ChangeProtocol.CREATE_MODE) & PERMISSIONS,
            request.intAt(ChangeProtocol.CREATE_FLAGS),
            caller(request));
    sendCreated(opened, reply);
  }

  private void sendCreated(Opened opened, KernelReply reply) throws FsException {
    Node node = opened.node();
    ByteBuffer out = reply.body();
    KernelProtocol.putEntry(out, BODY, node.inode(), node.attributes(), validSeconds);
    boolean isDirect = writesDirectly && opened.isOnlyWritten();
    int flags = isDirect ? KernelProtocol.FOPEN_DIRECT_IO : 0;
    putOpen(out, BODY + KernelProtocol.ENTRY_OUT_SIZE, opened.handle(), flags);
    reply.send(ChangeProtocol.CREATE_OUT_SIZE);
  }

  private static void putOpen(ByteBuffer out, int at, long handle, int flags) {
    out.putLong(at, handle);
    out.putInt(at + 8, flags);
    out.putInt(at + 12, 0);
  }

  private void read(KernelRequest request, KernelReply reply) throws FsException {
    long offset = request.longAt(KernelProtocol.READ_OFFSET);
    int size = request.intAt(KernelProtocol.READ_SIZE);
    if (size < 0 || size > reply.bodyLimit()) {
      throw new FsException(Errno.EINVAL, "invalid read size: " + Integer.toUnsignedString(size));
    }
    reply.body(size); // the file system may request the buffer before it knows the size
    fileSystem.read(request.inode(), handle(request), offset, size, reply);
    reply.sendCollected();
  }

  /** The bytes are written from the worker's own buffer. */
  private void write(KernelRequest request, KernelReply reply) throws FsException {
    int flags = request.intAt(ChangeProtocol.WRITE_FLAGS);
    int written =
        fileSystem.write(
            request.inode(),
            handle(request),
            request.longAt(ChangeProtocol.WRITE_OFFSET),
            request.bytesAt(ChangeProtocol.WRITE_DATA, request.intAt(ChangeProtocol.WRITE_SIZE)),
            (request.intAt(ChangeProtocol.WRITE_FILE_FLAGS) & O_APPEND) != 0,
            (flags & ChangeProtocol.WRITE_KILL_SUIDGID) != 0,
            caller(request));
    reply.body().putLong(BODY, Integer.toUnsignedLong(written));
    reply.send(ChangeProtocol.WRITE_OUT_SIZE);
  }

  private void fsync(KernelRequest request, KernelReply reply) throws FsException {
    boolean dataOnly =
        (request.intAt(ChangeProtocol.FSYNC_FLAGS) & ChangeProtocol.FSYNC_DATA_ONLY) != 0;
    fileSystem.fsync(request.inode(), handle(request), dataOnly, caller(request));
    reply.send(0);
  }

  private void fallocate(KernelRequest request, KernelReply reply) throws FsException {
    fileSystem.allocate(
        request.inode(),
        handle(request),
        request.intAt(ChangeProtocol.FALLOCATE_MODE),
        request.longAt(ChangeProtocol.FALLOCATE_OFFSET),
        request.longAt(ChangeProtocol.FALLOCATE_LENGTH),
        caller(request));
    reply.send(0);
  }

  private void copyRange(Opcode opcode, KernelRequest request, KernelReply reply)
      throws FsException {
    long length = request.longAt(ChangeProtocol.COPY_LENGTH);
    boolean isLong = opcode == Opcode.COPY_FILE_RANGE_64;
    long copied =
        fileSystem.copyRange(
            request.inode(),
            handle(request),
            request.longAt(ChangeProtocol.COPY_OFFSET),
            request.longAt(ChangeProtocol.COPY_TO_INODE),
            request.longAt(ChangeProtocol.COPY_TO_HANDLE),
            request.longAt(ChangeProtocol.COPY_TO_OFFSET),
            // The short answer has 32 bits; callers could take the last one for a sign.
            isLong ? length : Math.min(length, Integer.MAX_VALUE),
            caller(request));
    reply.body().putLong(BODY, isLong ? copied : copied & 0xffffffffL);
    reply.send(ChangeProtocol.COPY_OUT_SIZE);
  }

  /** The kernel asks only for data and holes, and handles other seeks itself. */
  private void lseek(KernelRequest request, KernelReply reply) throws FsException {
    int whence = request.intAt(KernelProtocol.LSEEK_WHENCE);
    if (whence != Posix.SEEK_DATA && whence != Posix.SEEK_HOLE) {
      throw new FsException(Errno.EINVAL, "invalid whence: " + whence);
    }
    long offset = request.longAt(KernelProtocol.LSEEK_OFFSET);
    long found = fileSystem.seek(request.inode(), handle(request), offset, whence);
    reply.body().putLong(BODY, found);
    reply.send(KernelProtocol.LSEEK_OUT_SIZE);
  }

  // ---- attributes

  private Node setattr(KernelRequest request) throws FsException {
    Caller caller = caller(request);
    WritableFileSystem.NewAttributes wanted = AttributeRequest.of(request);
    if (AttributeRequest.isEmpty(wanted) && caller.uid() != 0) {
      // The kernel sends this before a write, and for chown(2) without a change. The write drops
      // set-id bits itself; otherwise only the owner may drop them.
      Node now = fileSystem.attributes(request.inode());
      boolean hasBits = (now.attributes().mode() & (SET_USER_ID | SET_GROUP_ID)) != 0;
      if (hasBits && now.attributes().uid() != caller.uid()) {
        return now;
      }
    }
    return fileSystem.setAttributes(request.inode(), wanted, caller);
  }

  private void sendAttributes(Node node, KernelReply reply) throws FsException {
    KernelProtocol.putAttributesReply(
        reply.body(), BODY, node.inode(), node.attributes(), validSeconds);
    reply.send(KernelProtocol.ATTR_OUT_SIZE);
  }

  private void statx(KernelRequest request, KernelReply reply) throws FsException {
    Node node = fileSystem.attributes(request.inode());
    KernelProtocol.putStatx(reply.body(), BODY, node.inode(), node.attributes(), validSeconds);
    reply.send(KernelProtocol.STATX_OUT_SIZE);
  }

  /** The list at the source, adjusted for changes of the mode that have not reached the source. */
  private byte @Nullable [] accessList(long inode) throws FsException {
    byte[] list = fileSystem.extendedAttributes(inode).get(PosixAcl.ACCESS);
    return list == null
        ? null
        : PosixAcl.withMode(list, fileSystem.attributes(inode).attributes().mode());
  }

  private void getxattr(KernelRequest request, KernelReply reply) throws FsException {
    FileName name = request.nameAt(KernelProtocol.XATTR_NAME);
    long inode = request.inode();
    byte[] value =
        name.equals(PosixAcl.ACCESS)
            ? accessList(inode)
            : name.equals(PROBE) ? null : fileSystem.extendedAttribute(inode, name);
    if (value == null) {
      throw new FsException(Errno.ENODATA, name.toString());
    }
    KernelOperations.sendExtended(value, request.intAt(KernelProtocol.XATTR_SIZE), reply);
  }
}
