package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import jnr.ffi.Pointer;

/**
 * The groups of files in a user namespace that has only the user and one group, as that of {@code
 * pmfs run --private}. All other groups appear as one id, and the kernel would check files of a
 * mount there as if the user were in none of them. So a file that the user may use through another
 * group is shown as one of the user's own group: docs/decisions/0070.
 */
public final class UnmappedGroups {
  private static final LibC LIBC = LibC.INSTANCE;
  private static final int MODE = 28;
  private static final int UID = 20;
  private static final int GID = 24;
  private static final int READ = 4;
  private static final int EXECUTE = 1;

  private static final int UID_OF_PROCESS = LIBC.geteuid();
  private static final int GID_OF_PROCESS = LIBC.getegid();

  /** The id as which unmapped groups appear; -1 if all groups are mapped, or for root. */
  private static final int UNMAPPED = UID_OF_PROCESS == 0 ? -1 : unmapped();

  private UnmappedGroups() {}

  /** Whether this process is a user's and in a namespace without the user's other groups. */
  public static boolean exist() {
    return UNMAPPED != -1;
  }

  private static int unmapped() {
    try {
      String map = Files.readAllLines(Path.of("/proc/self/gid_map"), UTF_8).get(0).strip();
      return map.matches("0\\s+0\\s+4294967295")
          ? -1
          : Integer.parseUnsignedInt(
              Files.readAllLines(Path.of("/proc/sys/kernel/overflowgid"), UTF_8).get(0).strip());
    } catch (IOException | RuntimeException e) {
      return -1;
    }
  }

  /**
   * Changes group and mode in a struct statx such that the kernel permits what the source permits.
   *
   * @param name of the file in {@code directory}, or empty if that is the file
   */
  static void translate(Pointer statx, int directory, byte[] name) {
    if (UNMAPPED == -1 || statx.getInt(GID) != UNMAPPED || statx.getInt(UID) == UID_OF_PROCESS) {
      return;
    }
    int mode = statx.getShort(MODE) & 0xffff;
    int others = mode & (READ | EXECUTE);
    if (((mode >> 3) & (READ | EXECUTE)) == others) {
      return; // as for links
    }
    byte[] path = name.length > 1 ? name : Posix.terminated("/proc/self/fd/" + directory);
    int permitted = permitted(directory, path, READ) | permitted(directory, path, EXECUTE);
    if (permitted != others) {
      statx.putInt(GID, GID_OF_PROCESS);
      statx.putShort(MODE, (short) ((mode & ~((READ | EXECUTE) << 3)) | (permitted << 3)));
    }
  }

  private static int permitted(int directory, byte[] path, int right) {
    return LIBC.faccessat(directory, path, right, 0) == 0 ? right : 0;
  }
}
