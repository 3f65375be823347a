package io.pmfs.fuse.system;

import io.pmfs.writable.OutputCalls;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jnr.ffi.Platform;
import jnr.ffi.Pointer;

/**
 * Lets threads act on files as other users, with their groups, and goes back. Only a process of
 * root can; any other goes on as itself.
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

  /** Users whose groups are remembered. */
  private static final int MOST_KNOWN = 10_000;

  private static final long FRESH_NANOS = 60_000_000_000L;
  private static final OutputCalls.Acting SELF = () -> {};

  private final boolean isRoot = LibC.INSTANCE.geteuid() == 0;
  private final int[] ownGroups;
  private final Map<Long, Groups> known = new ConcurrentHashMap<>();

  private static final class Groups {
    private final int[] numbers;
    private final long atNanos = System.nanoTime();

    Groups(int[] numbers) {
      this.numbers = numbers;
    }

    boolean isFresh() {
      return System.nanoTime() - atNanos < FRESH_NANOS;
    }
  }

  FileUsers() {
    int count = Math.max(0, LIBC.getgroups(0, new int[0]));
    int[] groups = new int[count];
    ownGroups = count == 0 ? groups : Arrays.copyOf(groups, Math.max(0, fill(groups)));
  }

  private static int fill(int[] groups) {
    return LIBC.getgroups(groups.length, groups);
  }

  OutputCalls.Acting as(int uid, int gid) {
    if (!isRoot || (uid == 0 && gid == 0)) {
      return SELF;
    }
    int[] groups = groups(uid, gid);
    LIBC.syscall(SYS_SETGROUPS, groups.length, groups);
    LIBC.setfsgid(gid);
    // Last: it takes the right to do the others.
    LIBC.setfsuid(uid);
    return new Back();
  }

  private final class Back implements OutputCalls.Acting {
    private boolean isBack;

    @Override
    public void close() {
      if (!isBack) {
        isBack = true;
        LIBC.setfsuid(0);
        LIBC.setfsgid(0);
        LIBC.syscall(SYS_SETGROUPS, ownGroups.length, ownGroups);
      }
    }
  }

  /** The groups of a user, as the user database says. */
  private int[] groups(int uid, int gid) {
    long key = ((long) uid << 32) | (gid & 0xffffffffL);
    Groups found = known.get(key);
    if (found == null || !found.isFresh()) {
      if (known.size() >= MOST_KNOWN) {
        known.clear();
      }
      found = new Groups(ask(uid, gid));
      known.put(key, found);
    }
    return found.numbers;
  }

  /** The user database gives its answers in memory that belongs to the process. */
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
      for (String line : Files.readAllLines(Path.of("/proc/" + pid + "/status"))) {
        if (line.startsWith("Groups:")) {
          return Arrays.asList(line.substring("Groups:".length()).trim().split(" "))
              .contains(Integer.toUnsignedString(group));
        }
      }
    } catch (IOException e) {
      // The process is gone, or is in another name space.
      return contains(groups(uid, gid), group);
    }
    return contains(groups(uid, gid), group);
  }

  private static boolean contains(int[] groups, int group) {
    return Arrays.stream(groups).anyMatch(number -> number == group);
  }
}
