package io.pmfs.fuse.protocol;

/**
 * Numbers and layouts of the requests that open and change files (linux/fuse.h, version 7.45). As
 * in {@link KernelProtocol}, offsets count from the start of the request's header.
 */
public final class ChangeProtocol {
  // struct fuse_forget_in; struct fuse_batch_forget_in with its struct fuse_forget_one
  public static final int FORGET_LOOKUPS = 40;
  public static final int BATCH_COUNT = 40;
  public static final int BATCH_FIRST = 48;
  public static final int FORGET_ONE_SIZE = 16;

  // struct fuse_open_in
  public static final int OPEN_FLAGS = 40;
  public static final int OPEN_OPEN_FLAGS = 44;

  // struct fuse_create_in, for CREATE and TMPFILE
  public static final int CREATE_FLAGS = 40;
  public static final int CREATE_MODE = 44;
  public static final int CREATE_OPEN_FLAGS = 52;
  public static final int CREATE_NAME = 56;
  public static final int CREATE_OUT_SIZE =
      KernelProtocol.ENTRY_OUT_SIZE + KernelProtocol.OPEN_OUT_SIZE;

  // struct fuse_mknod_in, fuse_mkdir_in
  public static final int MKNOD_MODE = 40;
  public static final int MKNOD_DEVICE = 44;
  public static final int MKNOD_NAME = 56;
  public static final int MKDIR_MODE = 40;
  public static final int MKDIR_NAME = 48;

  // struct fuse_rename_in, fuse_rename2_in, fuse_link_in; the names follow
  public static final int RENAME_DIRECTORY = 40;
  public static final int RENAME_NAMES = 48;
  public static final int RENAME2_FLAGS = 48;
  public static final int RENAME2_NAMES = 56;
  public static final int LINK_INODE = 40;
  public static final int LINK_NAME = 48;

  /** The handle, in READ, WRITE, FLUSH, RELEASE, FSYNC, FALLOCATE, LSEEK and COPY_FILE_RANGE. */
  public static final int HANDLE = 40;

  // struct fuse_write_in, fuse_write_out
  public static final int WRITE_OFFSET = 48;
  public static final int WRITE_SIZE = 56;
  public static final int WRITE_FLAGS = 60;
  public static final int WRITE_FILE_FLAGS = 72;
  public static final int WRITE_DATA = 80;
  public static final int WRITE_OUT_SIZE = 8;

  // struct fuse_fsync_in
  public static final int FSYNC_FLAGS = 48;
  public static final int FSYNC_DATA_ONLY = 1;

  // struct fuse_setattr_in
  public static final int SETATTR_VALID = 40;
  public static final int SETATTR_HANDLE = 48;
  public static final int SETATTR_SIZE = 56;
  public static final int SETATTR_ATIME = 72;
  public static final int SETATTR_MTIME = 80;
  public static final int SETATTR_ATIME_NANOS = 96;
  public static final int SETATTR_MTIME_NANOS = 100;
  public static final int SETATTR_MODE = 108;
  public static final int SETATTR_UID = 116;
  public static final int SETATTR_GID = 120;

  // FATTR_...: which fields of struct fuse_setattr_in count
  public static final int FATTR_MODE = 1;
  public static final int FATTR_UID = 1 << 1;
  public static final int FATTR_GID = 1 << 2;
  public static final int FATTR_SIZE = 1 << 3;
  public static final int FATTR_ATIME = 1 << 4;
  public static final int FATTR_MTIME = 1 << 5;
  public static final int FATTR_FH = 1 << 6;
  public static final int FATTR_ATIME_NOW = 1 << 7;
  public static final int FATTR_MTIME_NOW = 1 << 8;
  public static final int FATTR_KILL_SUIDGID = 1 << 11;

  // struct fuse_setxattr_in without FUSE_SETXATTR_EXT (FUSE_COMPAT_SETXATTR_IN_SIZE)
  public static final int SETXATTR_SIZE = 40;
  public static final int SETXATTR_FLAGS = 44;
  public static final int SETXATTR_NAME = 48;

  // struct fuse_fallocate_in
  public static final int FALLOCATE_OFFSET = 48;
  public static final int FALLOCATE_LENGTH = 56;
  public static final int FALLOCATE_MODE = 64;

  // struct fuse_copy_file_range_in, fuse_copy_file_range_out
  public static final int COPY_OFFSET = 48;
  public static final int COPY_TO_INODE = 56;
  public static final int COPY_TO_HANDLE = 64;
  public static final int COPY_TO_OFFSET = 72;
  public static final int COPY_LENGTH = 80;
  public static final int COPY_OUT_SIZE = 8;

  /** In OPEN and CREATE: drop set-user-id and set-group-id bits if the file is truncated. */
  public static final int OPEN_KILL_SUIDGID = 1;

  /** In WRITE: drop set-user-id and set-group-id bits. */
  public static final int WRITE_KILL_SUIDGID = 1 << 2;

  private ChangeProtocol() {}
}
