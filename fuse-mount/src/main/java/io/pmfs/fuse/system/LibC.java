package io.pmfs.fuse.system;

import jnr.ffi.LibraryLoader;
import jnr.ffi.Pointer;
import jnr.ffi.annotations.In;
import jnr.ffi.annotations.Out;
import org.jspecify.annotations.Nullable;

/** System calls that the JDK lacks. Buffers are addresses; failures are -1 with errno. */
public interface LibC {
  LibC INSTANCE = LibraryLoader.create(LibC.class).load("c");

  int openat(int directory, @In byte[] path, int flags);

  int close(int file);

  long pread(int file, long buffer, long size, long offset);

  long lseek(int file, long offset, int whence);

  int statx(int directory, @In byte[] path, int flags, int mask, Pointer result);

  long readlinkat(int directory, @In byte[] path, @Out byte[] buffer, long size);

  /** For getdents64(2), which the C library of RHEL 8 does not export. */
  long syscall(long number, long file, Pointer buffer, long size);

  /** For open_tree(2), which old C libraries do not export. */
  long syscall(long number, int directory, @In byte[] path, int flags);

  /** For mount_setattr(2), likewise. */
  long syscall(
      long number, int directory, @In byte[] path, int flags, Pointer attributes, long size);

  /** For move_mount(2), likewise. */
  long syscall(long number, int from, @In byte[] fromPath, int to, @In byte[] toPath, int flags);

  long listxattr(@In byte[] path, @Out byte[] list, long size);

  long getxattr(@In byte[] path, @In byte[] name, @Out byte[] value, long size);

  int fstatvfs(int file, Pointer result);

  int fstatfs(int file, Pointer result);

  int open(@In byte[] path, int flags);

  int mount(
      @In byte @Nullable [] source,
      @In byte[] target,
      @In byte @Nullable [] type,
      long flags,
      @In byte @Nullable [] data);

  long read(int file, long buffer, long size);

  long write(int file, long buffer, long size);

  long writev(int file, long vectors, int count);

  /**
   * Returns the address, or -1. The first argument is a pointer because jffi 1.3 corrupts the last
   * of six integers.
   */
  long mmap(@Nullable Pointer address, long size, int protection, int flags, int file, long offset);

  int munmap(long address, long size);

  int madvise(long address, long size, int advice);

  int fallocate(int file, int mode, long offset, long size);

  int posix_fadvise(int file, long offset, long size, int advice);

  int sync_file_range(int file, long offset, long size, int flags);

  int pipe2(@Out int[] ends, int flags);

  int fcntl(int file, int command, long argument);

  /** Without offsets: reads and writes at the file's current position. */
  long splice(
      int in,
      @Nullable Pointer inOffset,
      int out,
      @Nullable Pointer outOffset,
      long size,
      int flags);

  int flock(int file, int operation);

  int ftruncate(int file, long size);

  int msync(long address, long size, int flags);

  long vmsplice(int pipe, long vectors, long count, int flags);

  int dup2(int file, int number);

  int ioctl(int file, long request, long argument);

  int umount2(@In byte[] target, int flags);

  int geteuid();

  int getegid();

  /** With the real user and group, and without capabilities unless that user is root. */
  int faccessat(int directory, @In byte[] path, int mode, int flags);

  int getpagesize();

  /** A struct group that the next call may overwrite; null if there is none. */
  @Nullable Pointer getgrgid(int gid);

  int getpriority(int which, int who);

  int setpriority(int which, int who, int niceness);

  int sched_getscheduler(int thread);

  int sched_setscheduler(int thread, int policy, @In int[] priority);

  int socketpair(int domain, int type, int protocol, @Out int[] sockets);

  long recvmsg(int socket, Pointer message, int flags);

  long sendmsg(int socket, Pointer message, int flags);

  int socket(int domain, int type, int protocol);

  int bind(int socket, @In byte[] address, int size);

  int listen(int socket, int waiting);

  int accept4(int socket, @Nullable Pointer address, @Nullable Pointer size, int flags);

  int connect(int socket, @In byte[] address, int size);

  int getsockopt(int socket, int level, int option, @Out int[] value, int[] size);

  int setsockopt(int socket, int level, int option, Pointer value, int size);

  int shutdown(int socket, int how);

  int posix_spawn_file_actions_init(Pointer actions);

  int posix_spawn_file_actions_adddup2(Pointer actions, int file, int number);

  int posix_spawn_file_actions_destroy(Pointer actions);

  /** Returns an errno and does not set it, like the functions for file actions. */
  int posix_spawnp(
      @Out int[] process,
      @In byte[] program,
      Pointer actions,
      @Nullable Pointer attributes,
      Pointer arguments,
      Pointer environment);

  int waitpid(int process, @Out int[] status, int options);

  int kill(int process, int signal);
}
