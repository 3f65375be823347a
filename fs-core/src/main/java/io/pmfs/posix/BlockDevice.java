package io.pmfs.posix;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * A block device as sysfs shows it.
 *
 * @param name without the directory, for example {@code pmem0}
 * @param offersDax whether file systems on it can have DAX ({@code queue/dax} of
 *     Documentation/ABI/stable/sysfs-block); null if unknown
 * @param isVirtio whether it is memory that a hypervisor provides through virtio-pmem
 * @param isSetAside whether it is ordinary memory reserved with the kernel option {@code memmap=}
 */
public record BlockDevice(
    String name, @Nullable Boolean offersDax, boolean isVirtio, boolean isSetAside) {

  /**
   * Reads the properties of a device or a partition from sysfs.
   *
   * @param link its sysfs path, such as {@code /sys/dev/block/259:0} or {@code
   *     /sys/class/block/pmem0}
   * @return null if there is no such device
   */
  public static @Nullable BlockDevice fromSysfs(Path link) {
    try {
      Path directory = link.toRealPath();
      String place = directory.toString();
      return new BlockDevice(
          directory.getFileName().toString(),
          offersDax(directory),
          place.contains("/virtio"),
          place.contains("/e820_pmem"));
    } catch (IOException e) {
      return null;
    }
  }

  /** Whether it is persistent memory, in any mode; the name is that of the driver nd_pmem. */
  public boolean isPmem() {
    return name.startsWith("pmem");
  }

  /** The queue of a partition is that of its disk, one directory above. */
  private static @Nullable Boolean offersDax(Path directory) {
    for (Path queue :
        new Path[] {directory.resolve("queue/dax"), directory.resolveSibling("queue/dax")}) {
      try {
        return Files.readString(queue, US_ASCII).strip().equals("1");
      } catch (IOException e) {
        // Try the next.
      }
    }
    return null;
  }
}
