package io.pmfs.it;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;

/**
 * Programs that change a tree in all ways at random: four processes with common files. An answer
 * that no local file system gives ends them with an error.
 */
final class RandomLoad {
  private static final String PROGRAM =
      """
      import ctypes, errno, os, random, socket, stat, sys
      root, seed, count, who = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), -1
      libc = ctypes.CDLL(None, use_errno=True)
      libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
      expected = {getattr(errno, name) for name in
                  "ENOENT EEXIST ENOTDIR EISDIR ENOTEMPTY EINVAL ELOOP EMLINK ENODATA EPERM ENXIO EACCES"
                  " EOPNOTSUPP".split()}
      def check(result):
          if result != 0:
              raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
      def name():
          parts = [r.choice("abcd") for _ in range(r.choice((0, 0, 1, 1, 1, 2)))]
          return "/".join([root] + parts + [r.choice("efghijkl")])
      def directory():
          return "/".join([root] + [r.choice("abcd") for _ in range(r.choice((1, 1, 2)))])
      def opened(flags, work):
          file = os.open(name(), flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
          try:
              if stat.S_ISREG(os.fstat(file).st_mode):
                  work(file)
          finally:
              os.close(file)
      def some():
          return r.randbytes(r.choice((1, 100, 4096, 70000)))
      def where():
          return r.choice((0, 10, 4096, 65536, r.randrange(300000)))
      def put():
          def work(file):
              os.write(file, some())
              if r.random() < 0.3:
                  os.setxattr(file, "user." + r.choice("xyz"), r.randbytes(20))
          opened(os.O_WRONLY | os.O_CREAT | os.O_TRUNC, work)
      def append():
          opened(os.O_WRONLY | os.O_APPEND, lambda f: os.write(f, some()))
      def overwrite():
          opened(os.O_WRONLY, lambda f: os.pwrite(f, some(), where()))
      def synced():
          opened(os.O_WRONLY | os.O_CREAT, lambda f: (os.write(f, some()), os.fsync(f)))
      def truncate():
          opened(os.O_WRONLY, lambda f: os.ftruncate(f, where()))
      def allocate():
          mode = r.choice((0, 1, 3, 16, 17))
          opened(os.O_WRONLY, lambda f: check(libc.fallocate(f, mode, where(), 1 + where())))
      def copy():
          opened(os.O_RDONLY, lambda f: opened(os.O_WRONLY | os.O_CREAT,
                 lambda g: os.copy_file_range(f, g, 100000)))
      def gone():
          path = directory() + "/t%d" % who
          file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
          os.write(file, b"x")
          os.unlink(path)
          os.close(file)
      def replace():
          path = directory() + "/n%d" % who
          with open(path, "wb") as file:
              file.write(some())
          os.rename(path, name())
      def exchange():
          a, b = r.choice(((name(), name()), (directory(), directory()), (name(), directory())))
          check(libc.renameat2(-100, a.encode(), -100, b.encode(), 2))
      def chown():
          os.chown(name(), r.choice((0, 1, 65534)), r.choice((0, 1)), follow_symlinks=False)
      def touch():
          times = (r.randrange(1 << 60), r.randrange(1 << 60))
          os.utime(r.choice((name, directory))(), ns=times, follow_symlinks=False)
      def attribute():
          path, key = r.choice((name, directory))(), "user." + r.choice("xyz")
          if r.random() < 0.3:
              os.removexattr(path, key, follow_symlinks=False)
          else:
              os.setxattr(path, key, r.randbytes(20), follow_symlinks=False)
      def node():
          kind = r.choice((stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFREG, stat.S_IFCHR))
          os.mknod(name(), kind | 0o640, os.makedev(1, 3))
      kinds = [put, put, put, append, append, overwrite, overwrite, synced, truncate, allocate,
               allocate, copy, gone, replace, exchange, chown, touch, touch, attribute, node,
               lambda: os.mkdir(directory(), r.choice((0o755, 0o700, 0o2775))),
               lambda: os.mkdir(directory()), lambda: os.rmdir(directory()),
               lambda: os.unlink(name()), lambda: os.unlink(name()), lambda: os.remove(name()),
               lambda: os.rename(name(), name()), lambda: os.rename(name(), name()),
               lambda: os.rename(directory(), directory()),
               lambda: os.link(name(), name(), follow_symlinks=False),
               lambda: os.link(name(), name(), follow_symlinks=False),
               lambda: os.symlink(name(), name()),
               lambda: os.chmod(r.choice((name, directory))(), r.choice((0o755, 0o600, 0o4711)))]
      children = []
      for number in range(4):
          child = os.fork()
          if child == 0:
              who, r = number, random.Random(seed * 10 + number)
              for step in range(count):
                  kind = r.choice(kinds)
                  try:
                      kind()
                  except OSError as e:
                      if e.errno not in expected:
                          print("process", number, "step", step, kind.__name__, e, flush=True)
                          os._exit(1)
              os._exit(0)
          children.append(child)
      sys.exit(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children))
      """;

  private RandomLoad() {}

  /** Begins it; what it prints goes to a file. */
  static Process start(Path root, long seed, int changes, Path output) {
    try {
      return new ProcessBuilder(
              "python3", "-c", PROGRAM, root.toString(), Long.toString(seed), "" + changes)
          .redirectErrorStream(true)
          .redirectOutput(output.toFile())
          .start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
