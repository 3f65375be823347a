package io.pmfs.fuse.system;

import jnr.ffi.LibraryLoader;
import jnr.ffi.Pointer;
import jnr.ffi.annotations.IgnoreError;
import jnr.ffi.annotations.In;
import jnr.ffi.annotations.Out;
import org.jspecify.annotations.Nullable;

/**
 * The system calls that change files; as in {@link LibC}, failures are -1 with errno. Calls that
 * change the user of a thread do not set errno.
 */
public interface FileLibC {
  FileLibC INSTANCE = LibraryLoader.create(FileLibC.class).load("c");

  int openat(int directory, @In byte[] path, int flags, int mode);

  long pwrite(int file, long buffer, long size, long offset);

  int fsync(int file);

  int fdatasync(int file);

  int mkdirat(int directory, @In byte[] path, int mode);

  int unlinkat(int directory, @In byte[] path, int flags);

  int symlinkat(@In byte[] target, int directory, @In byte[] path);

  int linkat(int directory, @In byte[] path, int toDirectory, @In byte[] toPath, int flags);

  int renameat2(int directory, @In byte[] path, int toDirectory, @In byte[] toPath, int flags);

  int chmod(@In byte[] path, int mode);

  int fchownat(int directory, @In byte[] path, int uid, int gid, int flags);

  int utimensat(int directory, @In byte[] path, Pointer times, int flags);

  int setxattr(@In byte[] path, @In byte[] name, @In byte[] value, long size, int flags);

  int removexattr(@In byte[] path, @In byte[] name);

  @IgnoreError
  int setfsuid(int uid);

  @IgnoreError
  int setfsgid(int gid);

  int getgroups(int count, @Out int[] groups);

  @Nullable Pointer getpwuid(int uid);

  int getgrouplist(Pointer user, int group, @Out int[] groups, int[] count);

  /** For mknodat(2), which old C libraries export under another name. */
  long syscall(long number, int directory, @In byte[] path, int mode, long device);

  /** For openat2(2), which C libraries do not export. */
  long syscall(long number, int directory, @In byte[] path, Pointer how, long size);

  /** For setgroups(2) of the calling thread: the C library's changes all threads. */
  @IgnoreError
  long syscall(long number, long count, long groups);
}
