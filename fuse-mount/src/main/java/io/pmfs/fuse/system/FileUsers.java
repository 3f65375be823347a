package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.writable.OutputCalls;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jnr.ffi.Memory;
import jnr.ffi.Platform;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;

/**
 * Lets threads make system calls as other users, with their groups. Only root can; other processes
 * make the calls as themselves.
 *
 * <p>INVARIANT: a thread acts as another user for one system call at a time. Anything opened
 * meanwhile, such as a class file or the user database, is opened as that user. So each call is
 * made once in advance ({@link LinuxOutputCalls}), and switching back allocates no memory.
 */
final class FileUsers {
  private static final FileLibC LIBC = FileLibC.INSTANCE;

  private static final long SYS_SETGROUPS =
      switch (Platform.getNativePlatform().getCPU()) {
        case X86_64 -> 116;
        case AARCH64 -> 159;
        default -> -1;
      };

  private static final int MAX_GROUPS = 65_536;

  /** The most users whose groups are cached. */
  private static final int MOST_KNOWN = 10_000;

  private static final long FRESH_NANOS = 60_000_000_000L;
  private static final OutputCalls.Acting SELF = () -> {};

  private static final boolean IS_ROOT = LibC.INSTANCE.geteuid() == 0;
  private static final User ROOT = new User(0, 0, ownGroups());

  /** The user of a thread's system calls; absent for the process's own. */
  private static final ThreadLocal<@Nullable User> ACTING = new ThreadLocal<>();

  private final Map<Long, User> known = new ConcurrentHashMap<>();

  /** A user and its groups, also in native memory. */
  private static final class User {
    private final int uid;
    private final int gid;
    private final int[] groups;
    private final Pointer memory;
    private final long address;
    private final long atNanos = System.nanoTime();

    User(int uid, int gid, int[] groups) {
      this.uid = uid;
      this.gid = gid;
      this.groups = groups;
      this.memory =
          Memory.allocateDirect(Posix.RUNTIME, Math.max(1, groups.length) * Integer.BYTES);
      this.memory.put(0, groups, 0, groups.length);
      this.address = memory.address();
    }

    boolean isFresh() {
      return System.nanoTime() - atNanos < FRESH_NANOS;
    }
  }

  private static int[] ownGroups() {
    int count = Math.max(0, LIBC.getgroups(0, new int[0]));
    int[] groups = new int[count];
    return count == 0 ? groups : Arrays.copyOf(groups, Math.max(0, LIBC.getgroups(count, groups)));
  }

  /** Switches users once, so that nothing has to be loaded for it later. */
  static void rehearse() {
    if (IS_ROOT) {
      callAs(ROOT, () -> 0);
    }
  }

  /** Makes a system call as the user that the thread acts as; errno is that of the call. */
  static long call(Posix.SystemCall call) {
    User user = ACTING.get();
    return user == null ? call.run() : callAs(user, call);
  }

  private static long callAs(User user, Posix.SystemCall call) {
    try {
      LIBC.syscall(SYS_SETGROUPS, user.groups.length, user.address);
      LIBC.setfsgid(user.gid);
      // Last, because it drops the capability for the other calls.
      LIBC.setfsuid(user.uid);
      return call.run();
    } finally {
      LIBC.setfsuid(0);
      LIBC.setfsgid(0);
      LIBC.syscall(SYS_SETGROUPS, ROOT.groups.length, ROOT.address);
    }
  }

  /** Makes {@link #call} act as a user on this thread, until the result is closed. */
  OutputCalls.Acting as(int uid, int gid) {
    if (!IS_ROOT || (uid == 0 && gid == 0)) {
      return SELF;
    }
    ACTING.set(user(uid, gid));
    return ACTING::remove;
  }

  /** A user with its groups from the user database. */
  private User user(int uid, int gid) {
    long key = ((long) uid << 32) | (gid & 0xffffffffL);
    User found = known.get(key);
    if (found == null || !found.isFresh()) {
      if (known.size() >= MOST_KNOWN) {
        known.clear();
      }
      found = new User(uid, gid, ask(uid, gid));
      known.put(key, found);
    }
    return found;
  }

  /** The user database returns its answers in static memory. */
  private static synchronized int[] ask(int uid, int gid) {
    Pointer user = LIBC.getpwuid(uid);
    if (user == null) {
      return new int[] {gid};
    }
    int[] count = {MAX_GROUPS};
    int[] groups = new int[MAX_GROUPS];
    int result = LIBC.getgrouplist(user.getPointer(0), gid, groups, count);
    return result < 0 ? new int[] {gid} : Arrays.copyOf(groups, count[0]);
  }

  boolean isInGroup(int pid, int uid, int gid, int group) {
    if (gid == group) {
      return true;
    }
    try {
      // The line of the name may have any bytes.
      for (String line : Files.readAllLines(Path.of("/proc/" + pid + "/status"), ISO_8859_1)) {
        if (line.startsWith("Groups:")) {
          return Arrays.asList(line.substring("Groups:".length()).trim().split(" "))
              .contains(Integer.toUnsignedString(group));
        }
      }
    } catch (IOException e) {
      // The process is gone, or in another PID namespace.
      return contains(user(uid, gid).groups, group);
    }
    return contains(user(uid, gid).groups, group);
  }

  private static boolean contains(int[] groups, int group) {
    return Arrays.stream(groups).anyMatch(number -> number == group);
  }
}
