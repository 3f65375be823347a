package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls.FileSystem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * The names of a file system by which it is known when it is mounted again: its type with its id of
 * statfs(2) and with what was mounted, as /proc/self/mountinfo (proc(5)) shows it.
 */
final class MountedNames {
  /**
   * Each subvolume has a device number, which mountinfo does not show, and an id (linux/magic.h).
   */
  private static final long BTRFS_SUPER_MAGIC = 0x9123683eL;

  private MountedNames() {}

  /**
   * @param type f_type
   * @param id f_fsid: 0 on NFS and FUSE; XFS and others have the device number there
   * @param device st_dev
   */
  static FileSystem of(long type, long id, long device, String mountinfo) {
    boolean hasId = id != 0 && id != device;
    String what = Long.toHexString(type) + (hasId ? " " + Long.toHexString(id) : "");
    Set<String> names = new LinkedHashSet<>();
    Set<Long> mounted = new HashSet<>();
    for (String line : mountinfo.split("\n", -1)) {
      List<String> fields = Arrays.asList(line.split(" ", -1));
      int separator = fields.indexOf("-");
      if (separator >= 6 && fields.size() >= separator + 3) {
        String[] numbers = fields.get(2).split(":", -1);
        long number = Posix.makedev(Integer.parseInt(numbers[0]), Integer.parseInt(numbers[1]));
        mounted.add(number);
        if (number == device) {
          names.add(what + " " + fields.get(separator + 2));
        }
      }
    }
    // Layers of an overlay have device numbers, too, but no id of their own.
    if (hasId && (type == BTRFS_SUPER_MAGIC || !names.isEmpty())) {
      names.add(what);
    }
    return new FileSystem(List.copyOf(names), mounted);
  }

  static String mountinfo() throws FsException {
    try {
      return Files.readString(Path.of("/proc/self/mountinfo"), ISO_8859_1);
    } catch (IOException e) {
      throw new FsException(Errno.EIO, "/proc/self/mountinfo", e);
    }
  }
}
