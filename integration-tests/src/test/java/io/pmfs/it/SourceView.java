package io.pmfs.it;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;
import ru.serce.jnrfuse.FuseFillDir;
import ru.serce.jnrfuse.FuseStubFS;
import ru.serce.jnrfuse.struct.FileStat;
import ru.serce.jnrfuse.struct.FuseFileInfo;
import ru.serce.jnrfuse.struct.Statvfs;
import ru.serce.jnrfuse.struct.Timespec;

/**
 * A view of a directory, mounted over that directory by a process of its own: it passes everything
 * on, with the inode numbers of the files, until it is told otherwise. The kernel keeps nothing of
 * it, so that what it is told holds from the next system call on. Its listings have names without
 * types, until it is told otherwise.
 *
 * <p>Each line of standard input is a command, which is answered with a line. Paths are relative to
 * the directory and have no spaces; {@code *} stands for all of them. It ends with its standard
 * input.
 *
 * <pre>{@code
 * lag LAG PATH          from now on shows this file as it is now, whatever becomes of it
 * catch-up              shows all files as they are
 * hang OPERATION PATH   leaves requests without an answer
 * fail OPERATION PATH   answers EIO
 * interrupt OPERATION PATH  answers a third of the requests with EINTR or EAGAIN; a change
 *                       that is answered with EINTR was made or not
 * mend                  hangs, fails and interrupts no more
 * renumber MASK         shows other inode numbers; 0 for those of the files
 * keep-little           keeps no change times, parts of a second and link counts, as sshfs does
 * list-types            has types in its listings
 * read-short            answers reads with fewer bytes than are asked for and there
 * rate BYTES            passes at most so many bytes of content a second; 0 for any number
 * counts                what was asked for of each file
 * }</pre>
 */
final class SourceView extends FuseStubFS {
  /** What can hang or fail. */
  enum Operation {
    STAT,
    LIST,
    OPEN,
    READ,
    CHANGE
  }

  private static final String ALL = "*";
  private static final int EINTR = 4;
  private static final int EIO = 5;
  private static final int EAGAIN = 11;
  private static final int BLOCK_BYTES = 4096;

  /** From the type in a listing to that in a mode: IFTODT in dirent.h. */
  private static final int TYPE_SHIFT = 12;

  /** What the kernel may keep, which is nothing; and what is mounted over is not empty. */
  private static final String OPTIONS =
      "direct_io,use_ino,attr_timeout=0,entry_timeout=0,negative_timeout=0,ac_attr_timeout=0,"
          + "hard_remove,big_writes,default_permissions,nonempty,fsname=view,subtype=test";

  private final String directory;
  private final CountDownLatch began = new CountDownLatch(1);
  private final Map<String, OldFile> old = new ConcurrentHashMap<>();
  private final Map<String, Counts> counts = new ConcurrentHashMap<>();
  private final Set<String> hanging = new HashSet<>(); // GUARDED_BY(this)
  private final Set<String> failing = ConcurrentHashMap.newKeySet();
  private final Set<String> interrupting = ConcurrentHashMap.newKeySet();
  private final Random random = new Random(1);
  private volatile int mask;
  private volatile boolean keepsLittle;
  private volatile boolean listsTypes;
  private volatile boolean readsShort;
  private final Object pace = new Object();
  private long bytesPerSecond; // GUARDED_BY(pace)
  private long freeAtNanos; // GUARDED_BY(pace)

  /** A file as it was. */
  private static final class OldFile {
    private final Lag lag;
    private final byte[] statx;
    private final byte[] content;

    OldFile(Lag lag, byte[] statx, byte[] content) {
      this.lag = lag;
      this.statx = statx;
      this.content = content;
    }

    boolean hasOldAttributes() {
      return lag != Lag.CONTENT;
    }
  }

  private record Counts(LongAdder stats, LongAdder opens, LongAdder reads, LongAdder bytes) {
    Counts() {
      this(new LongAdder(), new LongAdder(), new LongAdder(), new LongAdder());
    }
  }

  /**
   * A view of what is below an open directory.
   *
   * @param descriptor leads to the directory itself, whatever is mounted over it
   */
  private SourceView(int descriptor) {
    this.directory = "/proc/self/fd/" + descriptor + "/";
  }

  /**
   * Mounts, and says so.
   *
   * @param arguments the directory
   */
  public static void main(String[] arguments) throws Exception {
    SourceView view =
        new SourceView((int) Posix.check(Posix.open(arguments[0], Posix.O_DIRECTORY)));
    Thread serving =
        new Thread(
            () -> view.mount(Path.of(arguments[0]), true, false, new String[] {"-o", OPTIONS}),
            "fuse");
    serving.setDaemon(true);
    serving.start();
    while (!view.began.await(100, TimeUnit.MILLISECONDS)) {
      if (!serving.isAlive()) {
        throw new IllegalStateException("not mounted");
      }
    }
    System.out.println("mounted");
    view.obey();
    // Not exit(): what hangs need not be waited for.
    Runtime.getRuntime().halt(0);
  }

  private void obey() throws IOException {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, ISO_8859_1));
    String line;
    while ((line = lines.readLine()) != null) {
      String answer;
      try {
        answer = obey(line.split(" ", -1));
      } catch (RuntimeException e) {
        answer = "refused: " + line + ": " + e;
      }
      System.out.println(answer);
    }
  }

  private String obey(String[] words) {
    switch (words[0]) {
      case "lag" -> old.put("/" + words[2], asItIs(Lag.valueOf(words[1]), words[2]));
      case "catch-up" -> old.clear();
      case "hang" -> hang(fault(Operation.valueOf(words[1]), words[2]));
      case "fail" -> failing.add(fault(Operation.valueOf(words[1]), words[2]));
      case "interrupt" -> interrupting.add(fault(Operation.valueOf(words[1]), words[2]));
      case "mend" -> mend();
      case "renumber" -> mask = Integer.parseInt(words[1]);
      case "keep-little" -> keepsLittle = true;
      case "list-types" -> listsTypes = true;
      case "read-short" -> readsShort = true;
      case "rate" -> limit(Long.parseLong(words[1]));
      case "counts" -> {
        return counts.entrySet().stream()
            .map(SourceView::text)
            .collect(Collectors.joining(" ", "ok ", ""));
      }
      default -> throw new IllegalArgumentException("no command");
    }
    return "ok";
  }

  private static String text(Map.Entry<String, Counts> entry) {
    Counts counts = entry.getValue();
    return String.format(
        Locale.ROOT,
        "%s=%d,%d,%d,%d",
        entry.getKey().substring(1),
        counts.stats.sum(),
        counts.opens.sum(),
        counts.reads.sum(),
        counts.bytes.sum());
  }

  private OldFile asItIs(Lag lag, String path) {
    byte[] statx = new byte[Stat.BYTES];
    Posix.check(statx("/" + path, statx));
    int size = Math.toIntExact(Stat.parse(statx).size());
    return new OldFile(lag, statx, Posix.pread(directory + path, size, 0));
  }

  private static String fault(Operation operation, String path) {
    return operation + " " + (path.equals(ALL) ? ALL : "/" + path);
  }

  private synchronized void hang(String fault) {
    hanging.add(fault);
  }

  private synchronized void mend() {
    failing.clear();
    interrupting.clear();
    hanging.clear();
    notifyAll();
  }

  private void limit(long rate) {
    synchronized (pace) {
      bytesPerSecond = rate;
      freeAtNanos = System.nanoTime();
    }
  }

  /** Each request waits until the bytes before it have passed, as on a link. */
  private void pass(int bytes) throws InterruptedException {
    long until;
    synchronized (pace) {
      if (bytesPerSecond == 0) {
        return;
      }
      long nanos = TimeUnit.SECONDS.toNanos(1) * bytes / bytesPerSecond;
      freeAtNanos = Math.max(freeAtNanos, System.nanoTime()) + nanos;
      until = freeAtNanos;
    }
    TimeUnit.NANOSECONDS.sleep(until - System.nanoTime());
  }

  private interface Work {
    long run() throws InterruptedException;
  }

  /** Answers a request unless it hangs or fails. */
  private int answer(Operation operation, String path, Work work) {
    String one = operation + " " + path;
    String all = operation + " " + ALL;
    try {
      synchronized (this) {
        while (hanging.contains(one) || hanging.contains(all)) {
          wait();
        }
      }
      if (interrupting.contains(one) || interrupting.contains(all)) {
        switch (random.nextInt(6)) {
          case 0 -> {
            if (operation == Operation.CHANGE && random.nextBoolean()) {
              work.run();
            }
            return -EINTR;
          }
          case 1 -> {
            return -EAGAIN;
          }
          default -> {}
        }
      }
      return failing.contains(one) || failing.contains(all) ? -EIO : (int) work.run();
    } catch (InterruptedException | RuntimeException e) {
      System.err.println(one + ": " + e);
      return -EIO;
    }
  }

  private int change(String path, Work work) {
    return answer(Operation.CHANGE, path, work);
  }

  private Counts counted(String path) {
    return counts.computeIfAbsent(path, absent -> new Counts());
  }

  @Override
  public Pointer init(Pointer connection) {
    began.countDown();
    return connection;
  }

  @Override
  public void umount() {}

  private String real(String path) {
    return directory + path.substring(1);
  }

  private byte[] name(String path) {
    return Posix.c(real(path));
  }

  private long statx(String path, byte[] result) {
    // The directory itself is reached through the link of its descriptor.
    int flags = path.equals("/") ? 0 : Posix.AT_SYMLINK_NOFOLLOW;
    return Posix.statx(real(path), flags, result);
  }

  @Override
  public int getattr(String path, FileStat stat) {
    return answer(
        Operation.STAT,
        path,
        () -> {
          byte[] statx = new byte[Stat.BYTES];
          long found = statx(path, statx);
          if (found < 0) {
            return found;
          }
          counted(path).stats.increment();
          OldFile before = old.get(path);
          fill(stat, before != null && before.hasOldAttributes() ? before.statx : statx);
          return 0;
        });
  }

  private void fill(FileStat stat, byte[] statx) {
    Stat shown = Stat.parse(statx);
    stat.st_ino.set(shown.ino() ^ mask);
    stat.st_mode.set(shown.mode());
    stat.st_nlink.set(keepsLittle ? 1 : shown.nlink());
    stat.st_uid.set(shown.uid());
    stat.st_gid.set(shown.gid());
    stat.st_size.set(shown.size());
    stat.st_blocks.set(shown.blocks());
    stat.st_blksize.set(BLOCK_BYTES);
    ByteBuffer raw = ByteBuffer.wrap(statx).order(ByteOrder.nativeOrder());
    set(stat.st_atim, raw, 64);
    set(stat.st_ctim, raw, keepsLittle ? 112 : 96);
    set(stat.st_mtim, raw, 112);
  }

  private void set(Timespec time, ByteBuffer statx, int at) {
    time.tv_sec.set(statx.getLong(at));
    time.tv_nsec.set(keepsLittle ? 0 : statx.getInt(at + 8));
  }

  @Override
  public int readdir(
      String path, Pointer buffer, FuseFillDir filler, long offset, FuseFileInfo info) {
    return answer(
        Operation.LIST,
        path,
        () -> {
          for (Posix.Entry entry : Posix.list(real(path))) {
            filler.apply(buffer, entry.name(), listsTypes ? described(entry) : null, 0);
          }
          return 0;
        });
  }

  /** As listings have it: number and type. */
  private FileStat described(Posix.Entry entry) {
    FileStat stat = new FileStat(jnr.ffi.Runtime.getSystemRuntime());
    stat.st_ino.set(entry.ino() ^ mask);
    stat.st_mode.set(entry.type() << TYPE_SHIFT);
    return stat;
  }

  @Override
  public int opendir(String path, FuseFileInfo info) {
    return 0;
  }

  @Override
  public int readlink(String path, Pointer buffer, long size) {
    byte[] target = Posix.c(Posix.readlink(real(path)));
    buffer.put(0, target, 0, (int) Math.min(target.length, size));
    return 0;
  }

  @Override
  public int open(String path, FuseFileInfo info) {
    return answer(
        Operation.OPEN,
        path,
        () -> {
          counted(path).opens.increment();
          return opened(Posix.open(real(path), info.flags.intValue()), info);
        });
  }

  @Override
  public int create(String path, long mode, FuseFileInfo info) {
    int flags = info.flags.intValue() | Posix.O_CREAT;
    return change(
        path, () -> opened(Posix.result(Posix.LIBC.open(name(path), flags, (int) mode)), info));
  }

  private static long opened(long file, FuseFileInfo info) {
    if (file >= 0) {
      info.fh.set(file);
    }
    return Math.min(file, 0);
  }

  @Override
  public int release(String path, FuseFileInfo info) {
    return (int) Posix.result(Posix.LIBC.close(info.fh.intValue()));
  }

  @Override
  public int read(String path, Pointer buffer, long size, long offset, FuseFileInfo info) {
    return answer(
        Operation.READ,
        path,
        () -> {
          byte[] content = shown(path, (int) size, offset, info.fh.intValue());
          if (readsShort && content.length > 1) {
            content = Arrays.copyOf(content, 1 + random.nextInt(content.length));
          }
          pass(content.length);
          Counts counted = counted(path);
          counted.reads.increment();
          counted.bytes.add(content.length);
          buffer.put(0, content, 0, content.length);
          return content.length;
        });
  }

  private byte[] shown(String path, int size, long offset, int file) {
    OldFile before = old.get(path);
    if (before == null) {
      return pread(file, size, offset);
    }
    return switch (before.lag) {
      case EVERYTHING -> part(before.content, size, offset);
      case ATTRIBUTES ->
          pread(file, (int) Math.max(0, Math.min(size, before.content.length - offset)), offset);
      case ATTRIBUTES_UNTIL_READ -> {
        old.remove(path);
        yield pread(file, size, offset);
      }
      case CONTENT -> {
        byte[] now = pread(file, size, offset);
        byte[] then = part(before.content, now.length, offset);
        System.arraycopy(then, 0, now, 0, then.length);
        yield now;
      }
    };
  }

  private static byte[] part(byte[] content, int size, long offset) {
    int from = (int) Math.min(content.length, offset);
    return Arrays.copyOfRange(content, from, Math.min(content.length, from + size));
  }

  private static byte[] pread(int file, int size, long offset) {
    byte[] content = new byte[size];
    return Arrays.copyOf(content, (int) Posix.check(Posix.pread(file, content, size, offset)));
  }

  @Override
  public int write(String path, Pointer buffer, long size, long offset, FuseFileInfo info) {
    byte[] content = new byte[(int) size];
    buffer.get(0, content, 0, content.length);
    return change(
        path,
        () -> Posix.result(Posix.LIBC.pwrite(info.fh.intValue(), content, content.length, offset)));
  }

  @Override
  public int statfs(String path, Statvfs result) {
    long blocks = 1 << 20;
    result.f_bsize.set(BLOCK_BYTES);
    result.f_frsize.set(BLOCK_BYTES);
    result.f_blocks.set(blocks);
    result.f_bfree.set(blocks);
    result.f_bavail.set(blocks);
    result.f_files.set(blocks);
    result.f_ffree.set(blocks);
    result.f_namemax.set(255);
    return 0;
  }

  @Override
  public int getxattr(String path, String name, Pointer value, long size) {
    byte[] bytes = new byte[(int) size];
    return give(
        Posix.result(Posix.LIBC.lgetxattr(name(path), Posix.c(name), bytes, size)), bytes, value);
  }

  @Override
  public int listxattr(String path, Pointer list, long size) {
    byte[] bytes = new byte[(int) size];
    return give(Posix.result(Posix.LIBC.listxattr(name(path), bytes, size)), bytes, list);
  }

  private static int give(long got, byte[] bytes, @Nullable Pointer destination) {
    if (destination != null && got > 0 && bytes.length > 0) {
      destination.put(0, bytes, 0, (int) got);
    }
    return (int) got;
  }

  @Override
  public int setxattr(String path, String name, Pointer value, long size, int flags) {
    byte[] bytes = new byte[(int) size];
    value.get(0, bytes, 0, bytes.length);
    return change(
        path,
        () -> Posix.result(Posix.LIBC.setxattr(name(path), Posix.c(name), bytes, size, flags)));
  }

  @Override
  public int removexattr(String path, String name) {
    return change(path, () -> Posix.result(Posix.LIBC.removexattr(name(path), Posix.c(name))));
  }

  @Override
  public int mkdir(String path, long mode) {
    return change(path, () -> Posix.result(Posix.LIBC.mkdir(name(path), (int) mode)));
  }

  @Override
  public int rmdir(String path) {
    return change(path, () -> Posix.result(Posix.LIBC.rmdir(name(path))));
  }

  @Override
  public int unlink(String path) {
    return change(path, () -> Posix.result(Posix.LIBC.unlink(name(path))));
  }

  @Override
  public int rename(String from, String to) {
    return change(to, () -> Posix.result(Posix.LIBC.rename(name(from), name(to))));
  }

  @Override
  public int link(String existing, String path) {
    return change(path, () -> Posix.result(Posix.LIBC.link(name(existing), name(path))));
  }

  @Override
  public int symlink(String target, String path) {
    return change(path, () -> Posix.result(Posix.LIBC.symlink(Posix.c(target), name(path))));
  }

  @Override
  public int chmod(String path, long mode) {
    return change(path, () -> Posix.result(Posix.LIBC.chmod(name(path), (int) mode)));
  }

  @Override
  public int chown(String path, long uid, long gid) {
    return change(path, () -> Posix.result(Posix.LIBC.lchown(name(path), (int) uid, (int) gid)));
  }

  @Override
  public int truncate(String path, long size) {
    return change(path, () -> Posix.result(Posix.LIBC.truncate(name(path), size)));
  }

  @Override
  public int ftruncate(String path, long size, FuseFileInfo info) {
    return change(path, () -> Posix.result(Posix.LIBC.ftruncate(info.fh.intValue(), size)));
  }

  @Override
  public int utimens(String path, Timespec[] times) {
    long[] raw = new long[4];
    for (int i = 0; i < 2; i++) {
      raw[2 * i] = times[i].tv_sec.get();
      raw[2 * i + 1] = times[i].tv_nsec.longValue();
    }
    return change(
        path,
        () ->
            Posix.result(
                Posix.LIBC.utimensat(Posix.AT_FDCWD, name(path), raw, Posix.AT_SYMLINK_NOFOLLOW)));
  }

  @Override
  public int fsync(String path, int dataOnly, FuseFileInfo info) {
    return (int) Posix.result(Posix.LIBC.fsync(info.fh.intValue()));
  }
}
