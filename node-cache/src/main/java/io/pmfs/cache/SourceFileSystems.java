package io.pmfs.cache;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.hash.Hashing;
import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The file systems whose files may be copied: those of the listed directories, looked up at each
 * request. A user may mount a file system with arbitrary inode numbers and times, and it may get
 * the device number of a listed one that was unmounted. But while a file is open, no other file
 * system can get its device number.
 */
final class SourceFileSystems {
  private final List<Path> directories;

  /** The last known device and file system of each directory. */
  private final Map<Path, Known> known = new HashMap<>(); // GUARDED_BY(this)

  private record Known(long device, long name) {}

  SourceFileSystems(List<Path> directories) {
    this.directories = List.copyOf(directories);
  }

  /**
   * The name of a listed file system, which survives reboots; null if none has this device. The
   * caller must keep a file of the device open meanwhile.
   */
  @Nullable Long name(long device) {
    List<Path> likelyFirst = new ArrayList<>(directories);
    // A server that does not answer delays only questions about its own files.
    likelyFirst.sort(Comparator.comparing(directory -> lastDevice(directory) != device));
    for (Path directory : likelyFirst) {
      try {
        if (PassedFile.deviceAt(directory) == device) {
          return name(directory, device);
        }
      } catch (FsException e) {
        // This one is missing; perhaps another one has the device.
      }
    }
    return null;
  }

  private synchronized long lastDevice(Path directory) {
    Known last = known.get(directory);
    return last == null ? -1 : last.device;
  }

  private long name(Path directory, long device) throws FsException {
    synchronized (this) {
      Known last = known.get(directory);
      if (last != null && last.device == device) {
        return last.name;
      }
    }
    try (DirectoryStore root = new DirectoryStore(real(directory))) {
      String identity = directory + "\n" + root.identity();
      String hash = Hashing.sha256().hashString(identity, UTF_8).toString();
      long name = Long.parseUnsignedLong(hash.substring(0, 16), 16);
      synchronized (this) {
        known.put(directory, new Known(device, name));
      }
      return name;
    }
  }

  /** Follows symbolic links, because root has listed the directory. */
  private static Path real(Path directory) throws FsException {
    try {
      return directory.toRealPath();
    } catch (IOException e) {
      throw new FsException(Errno.ENOENT, directory.toString(), e);
    }
  }
}
