package io.pmfs.posix;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The file system of a directory, as shown by /proc/self/mountinfo (proc(5)) and sysfs.
 *
 * @param source the mounted device, for example {@code /dev/pmem0}
 * @param options the options of the mount and of the file system
 * @param device its device; null if it has none, or an unknown one
 */
public record MountedFileSystem(
    String type, String source, List<String> options, @Nullable BlockDevice device) {

  /**
   * Looks up the file system by its device number.
   *
   * @param root the directory that contains proc and sys: {@code /} except in tests
   * @return null if it is not found
   */
  public static @Nullable MountedFileSystem of(Path directory, Path root) {
    try {
      long number = ((Number) Files.getAttribute(directory, "unix:dev")).longValue();
      String text = Files.readString(root.resolve("proc/self/mountinfo"), ISO_8859_1);
      return parse(text, device(number), root);
    } catch (IOException | RuntimeException e) {
      return null;
    }
  }

  /** Formats a dev_t, composed as by glibc's makedev(3), as the kernel does. */
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
                BlockDevice.fromSysfs(root.resolve("sys/dev/block").resolve(device)));
      }
    }
    return found;
  }

  /** {@code ext4 on /dev/pmem0}, or the type alone. */
  public String description() {
    if (device != null) {
      return type + " on /dev/" + device.name();
    }
    return source.startsWith("/dev/") ? type + " on " + source : type;
  }

  /** The mount option that controls DAX; null if there is none. */
  @Nullable
  public String daxOption() {
    return options.stream()
        .filter(option -> option.equals("dax") || option.startsWith("dax="))
        .findFirst()
        .orElse(null);
  }
}
