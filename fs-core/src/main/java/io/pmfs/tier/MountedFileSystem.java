package io.pmfs.tier;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The file system that a directory lies on, as /proc/self/mountinfo (proc(5)) and sysfs show it.
 *
 * @param source what was mounted, for example {@code /dev/pmem0}
 * @param options those of the mount and of the file system
 * @param device the device that it lies on; null if it lies on none, or none that is known
 */
record MountedFileSystem(
    String type, String source, List<String> options, @Nullable BlockDevice device) {

  /**
   * Looks it up by the number of its device.
   *
   * @param root {@code /} except in tests: below it lie proc and sys
   * @return null if it is not found
   */
  static @Nullable MountedFileSystem of(Path directory, Path root) {
    try {
      long number = ((Number) Files.getAttribute(directory, "unix:dev")).longValue();
      String text = Files.readString(root.resolve("proc/self/mountinfo"), ISO_8859_1);
      return parse(text, device(number), root);
    } catch (IOException | RuntimeException e) {
      return null;
    }
  }

  /** A dev_t as glibc's makedev(3) composes it, as the kernel writes it. */
  private static String device(long number) {
    long major = ((number >>> 8) & 0xfff) | ((number >>> 32) & 0xfffff000L);
    long minor = (number & 0xff) | ((number >>> 12) & 0xffffff00L);
    return major + ":" + minor;
  }

  private static @Nullable MountedFileSystem parse(String mountinfo, String device, Path root) {
    MountedFileSystem found = null;
    for (String line : mountinfo.split("\n", -1)) {
      List<String> fields = Arrays.asList(line.split(" ", -1));
      int separator = fields.indexOf("-");
      if (separator >= 6 && fields.size() >= separator + 4 && fields.get(2).equals(device)) {
        String options = fields.get(5) + "," + fields.get(separator + 3);
        found =
            new MountedFileSystem(
                fields.get(separator + 1),
                fields.get(separator + 2),
                List.of(options.split(",", -1)),
                BlockDevice.read(root.resolve("sys/dev/block").resolve(device)));
      }
    }
    return found;
  }

  /** {@code ext4 on /dev/pmem0}, or the type alone. */
  String description() {
    if (device != null) {
      return type + " on /dev/" + device.name();
    }
    return source.startsWith("/dev/") ? type + " on " + source : type;
  }

  /** The option that says which files have DAX; null if there is none. */
  @Nullable String daxOption() {
    return options.stream()
        .filter(option -> option.equals("dax") || option.startsWith("dax="))
        .findFirst()
        .orElse(null);
  }
}
