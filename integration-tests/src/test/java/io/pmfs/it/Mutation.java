package io.pmfs.it;

import static io.pmfs.it.Posix.LIBC;
import static io.pmfs.it.Posix.c;
import static io.pmfs.it.Posix.result;

import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;

/**
 * A system call that would change a tree.
 *
 * @param errno with which it fails on a read-only mount
 * @param call makes it below a root, and answers minus the errno
 */
record Mutation(String name, String errno, ToLongFunction<String> call) {
  private static final long[] TIMES = {1, 2, 3, 4};
  private static final byte[] VALUE = {'v'};
  private static final int FALLOC_FL_KEEP_SIZE = 1;
  private static final int FALLOC_FL_PUNCH_HOLE = 2;

  /** Builds what the calls are made on. */
  static void createTree(String root) {
    Posix.write(root + "/file", 0, new byte[5000]);
    Posix.write(root + "/other", 0, new byte[10]);
    Posix.check(result(LIBC.mkdir(c(root + "/directory"), 0755)));
    Posix.check(result(LIBC.mkdir(c(root + "/empty"), 0755)));
    Posix.write(root + "/directory/file", 0, new byte[10]);
    Posix.check(result(LIBC.symlink(c("file"), c(root + "/link"))));
    Posix.check(result(LIBC.mknod(c(root + "/fifo"), Stat.S_IFIFO | 0644, 0)));
    // Fails where the file system has no attributes for users; the calls below fail before that.
    long unused = Posix.setxattr(root + "/file", "user.name", VALUE);
  }

  @Override
  public String toString() {
    return name;
  }

  static List<Mutation> all() {
    List<Mutation> all = new ArrayList<>();
    opens(all);
    names(all);
    attributes(all);
    contents(all);
    return all;
  }

  private static void opens(List<Mutation> all) {
    add(all, "open O_WRONLY", "EROFS", r -> opened(r + "/file", Posix.O_WRONLY));
    add(all, "open O_RDWR", "EROFS", r -> opened(r + "/file", Posix.O_RDWR));
    add(all, "open O_RDWR of a link", "EROFS", r -> opened(r + "/link", Posix.O_RDWR));
    add(
        all,
        "open O_WRONLY|O_APPEND",
        "EROFS",
        r -> opened(r + "/file", Posix.O_WRONLY | Posix.O_APPEND));
    add(all, "open O_RDONLY|O_TRUNC", "EROFS", r -> opened(r + "/file", Posix.O_TRUNC));
    add(all, "open O_WRONLY|O_TRUNC", "EROFS", r -> opened(r + "/file", 1 | Posix.O_TRUNC));
    add(all, "open O_CREAT of new", "EROFS", r -> opened(r + "/new", 1 | Posix.O_CREAT));
    add(all, "open O_CREAT read-only", "EROFS", r -> opened(r + "/new", Posix.O_CREAT));
    add(all, "open O_CREAT of existing", "EROFS", r -> opened(r + "/file", 1 | Posix.O_CREAT));
    add(
        all,
        "open O_CREAT|O_EXCL of existing",
        "EEXIST",
        r -> opened(r + "/file", 1 | Posix.O_CREAT | Posix.O_EXCL));
    add(all, "open O_TMPFILE", "EROFS", r -> opened(r + "/directory", 2 | Posix.O_TMPFILE));
    add(all, "open O_WRONLY of directory", "EISDIR", r -> opened(r + "/directory", 1));
    add(all, "open O_WRONLY of missing", "ENOENT", r -> opened(r + "/missing", 1));
    add(all, "creat", "EROFS", r -> result(LIBC.creat(c(r + "/new"), 0644)));
    add(all, "creat over existing", "EROFS", r -> result(LIBC.creat(c(r + "/file"), 0644)));
    add(all, "access W_OK", "EROFS", r -> Posix.access(r + "/file", Posix.W_OK));
    add(all, "access W_OK of directory", "EROFS", r -> Posix.access(r + "/empty", Posix.W_OK));
  }

  private static long opened(String path, int flags) {
    return Posix.withFile(path, flags, fd -> 0);
  }

  private static void names(List<Mutation> all) {
    add(all, "mkdir", "EROFS", r -> result(LIBC.mkdir(c(r + "/new"), 0755)));
    add(all, "mkdir of existing", "EEXIST", r -> result(LIBC.mkdir(c(r + "/empty"), 0755)));
    add(all, "mknod of file", "EROFS", r -> mknod(r, Stat.S_IFREG));
    add(all, "mknod of fifo", "EROFS", r -> mknod(r, Stat.S_IFIFO));
    add(all, "mknod of socket", "EROFS", r -> mknod(r, Stat.S_IFSOCK));
    add(all, "unlink", "EROFS", r -> result(LIBC.unlink(c(r + "/file"))));
    add(all, "unlink of link", "EROFS", r -> result(LIBC.unlink(c(r + "/link"))));
    add(all, "unlink of directory", "EROFS", r -> result(LIBC.unlink(c(r + "/directory"))));
    add(all, "unlink of missing", "EROFS", r -> result(LIBC.unlink(c(r + "/missing"))));
    add(all, "rmdir", "EROFS", r -> result(LIBC.rmdir(c(r + "/empty"))));
    add(all, "rmdir of non-empty", "EROFS", r -> result(LIBC.rmdir(c(r + "/directory"))));
    add(all, "rename", "EROFS", r -> rename(r, "/file", "/new"));
    add(all, "rename over existing", "EROFS", r -> rename(r, "/file", "/other"));
    add(all, "rename into directory", "EROFS", r -> rename(r, "/file", "/directory/new"));
    add(all, "rename of directory", "EROFS", r -> rename(r, "/directory", "/new"));
    add(all, "rename of missing", "EROFS", r -> rename(r, "/missing", "/new"));
    add(all, "link", "EROFS", r -> result(LIBC.link(c(r + "/file"), c(r + "/new"))));
    add(
        all,
        "link over existing",
        "EEXIST",
        r -> result(LIBC.link(c(r + "/file"), c(r + "/other"))));
    add(all, "symlink", "EROFS", r -> result(LIBC.symlink(c("file"), c(r + "/new"))));
  }

  private static long mknod(String root, int type) {
    return result(LIBC.mknod(c(root + "/new"), type | 0644, 0));
  }

  private static long rename(String root, String from, String to) {
    return result(LIBC.rename(c(root + from), c(root + to)));
  }

  private static void attributes(List<Mutation> all) {
    add(all, "chmod", "EROFS", r -> result(LIBC.chmod(c(r + "/file"), 0600)));
    add(all, "chmod to the same", "EROFS", r -> result(LIBC.chmod(c(r + "/file"), 0644)));
    add(all, "chmod of directory", "EROFS", r -> result(LIBC.chmod(c(r + "/empty"), 0700)));
    add(all, "fchmod", "EROFS", r -> read(r, fd -> result(LIBC.fchmod(fd, 0600))));
    add(all, "chown", "EROFS", r -> result(LIBC.chown(c(r + "/file"), 1, 1)));
    add(all, "chown to the same", "EROFS", r -> result(LIBC.chown(c(r + "/file"), -1, -1)));
    add(all, "lchown", "EROFS", r -> result(LIBC.lchown(c(r + "/link"), 1, 1)));
    add(all, "utimensat", "EROFS", r -> Posix.utimens(r + "/file", 1, 2));
    add(all, "utimensat of link", "EROFS", r -> Posix.utimens(r + "/link", 1, 2));
    add(all, "futimens", "EROFS", r -> read(r, fd -> result(LIBC.futimens(fd, TIMES))));
    add(all, "setxattr", "EROFS", r -> Posix.setxattr(r + "/file", "user.new", VALUE));
    add(all, "setxattr of existing", "EROFS", r -> Posix.setxattr(r + "/file", "user.name", VALUE));
    add(
        all,
        "fsetxattr",
        "EROFS",
        r -> read(r, fd -> result(LIBC.fsetxattr(fd, c("user.new"), VALUE, VALUE.length, 0))));
    add(all, "removexattr", "EROFS", r -> result(LIBC.removexattr(c(r + "/file"), c("user.name"))));
  }

  private static void contents(List<Mutation> all) {
    add(all, "truncate", "EROFS", r -> result(LIBC.truncate(c(r + "/file"), 10)));
    add(all, "truncate to the same", "EROFS", r -> result(LIBC.truncate(c(r + "/file"), 5000)));
    add(all, "truncate of directory", "EISDIR", r -> result(LIBC.truncate(c(r + "/empty"), 1)));
    add(all, "ftruncate", "EINVAL", r -> read(r, fd -> result(LIBC.ftruncate(fd, 10))));
    add(all, "write", "EBADF", r -> read(r, fd -> result(LIBC.write(fd, VALUE, 1))));
    add(all, "pwrite", "EBADF", r -> read(r, fd -> result(LIBC.pwrite(fd, VALUE, 1, 0))));
    add(all, "fallocate", "EBADF", r -> read(r, fd -> result(LIBC.fallocate(fd, 0, 0, 9999))));
    add(
        all,
        "fallocate to punch a hole",
        "EBADF",
        r ->
            read(
                r,
                fd ->
                    result(
                        LIBC.fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096))));
    add(all, "mmap to write", "EACCES", r -> read(r, Mutation::mapToWrite));
  }

  private static long mapToWrite(int fd) {
    int protection = Posix.PROT_READ | Posix.PROT_WRITE;
    jnr.ffi.Pointer mapped = LIBC.mmap(null, 4096, protection, Posix.MAP_SHARED, fd, 0);
    return mapped.address() == -1 ? result(-1) : result(LIBC.munmap(mapped.address(), 4096));
  }

  private static long read(String root, java.util.function.IntToLongFunction call) {
    return Posix.withFile(root + "/file", Posix.O_RDONLY, call);
  }

  private static void add(
      List<Mutation> all, String name, String errno, ToLongFunction<String> call) {
    all.add(new Mutation(name, errno, call));
  }
}
