package io.pmfs.it;

import jnr.ffi.Pointer;
import jnr.ffi.annotations.In;
import jnr.ffi.annotations.Out;
import org.jspecify.annotations.Nullable;

/** The C library's functions as they are; {@link Posix} makes them pleasant. */
public interface Libc {
  int open(@In byte[] path, int flags, int mode);

  int creat(@In byte[] path, int mode);

  int close(int fd);

  long ptrace(long request, int thread, @Nullable Pointer address, @Nullable Pointer data);

  int waitpid(int process, @Out byte[] status, int options);

  long read(int fd, @Out byte[] buffer, long count);

  long pread(int fd, @Out byte[] buffer, long count, long offset);

  int posix_fadvise(int fd, long offset, long length, int advice);

  long write(int fd, @In byte[] buffer, long count);

  long pwrite(int fd, @In byte[] buffer, long count, long offset);

  // With numbers alone jnr-ffi 2.2.19 passes a wrong sixth argument; with a Pointer among them it
  // does not.
  Pointer mmap(
      @Nullable Pointer address, long length, int protection, int flags, int fd, long offset);

  int munmap(long address, long length);

  long lseek(int fd, long offset, int whence);

  int statx(int dirFd, @In byte[] path, int flags, int mask, @Out byte[] buffer);

  int statfs(@In byte[] path, @Out byte[] buffer);

  int access(@In byte[] path, int mode);

  long readlink(@In byte[] path, @Out byte[] buffer, long size);

  long getxattr(@In byte[] path, @In byte[] name, @Out byte[] value, long size);

  long lgetxattr(@In byte[] path, @In byte[] name, @Out byte[] value, long size);

  long listxattr(@In byte[] path, @Out byte[] list, long size);

  int setxattr(@In byte[] path, @In byte[] name, @In byte[] value, long size, int flags);

  int fsetxattr(int fd, @In byte[] name, @In byte[] value, long size, int flags);

  int removexattr(@In byte[] path, @In byte[] name);

  Pointer opendir(@In byte[] path);

  Pointer readdir(Pointer stream);

  long telldir(Pointer stream);

  void seekdir(Pointer stream, long location);

  int closedir(Pointer stream);

  int mkdir(@In byte[] path, int mode);

  int mknod(@In byte[] path, int mode, long device);

  int unlink(@In byte[] path);

  int rmdir(@In byte[] path);

  int rename(@In byte[] from, @In byte[] to);

  int link(@In byte[] existing, @In byte[] path);

  int symlink(@In byte[] target, @In byte[] path);

  int chmod(@In byte[] path, int mode);

  int fchmod(int fd, int mode);

  int chown(@In byte[] path, int uid, int gid);

  int lchown(@In byte[] path, int uid, int gid);

  int truncate(@In byte[] path, long length);

  int ftruncate(int fd, long length);

  int fsync(int fd);

  int fallocate(int fd, int mode, long offset, long length);

  int utimensat(int dirFd, @In byte[] path, @In long[] times, int flags);

  int futimens(int fd, @In long[] times);

  long syscall(long number, int fd, @In long[] in, @Out long[] out, int flags);

  int setns(int fd, int kind);

  int ioctl(int fd, long request, @In @Out int[] argument);
}
