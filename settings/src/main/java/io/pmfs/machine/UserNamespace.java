package io.pmfs.machine;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * How users outside a user namespace appear in it; user_namespaces(7).
 *
 * @param root the id as which root of the machine, or of the parent namespace, appears
 */
public record UserNamespace(int root) {
  public static UserNamespace ofProcess() throws IOException {
    // Not Files.readString: it reads one byte first, after which the kernel returns no more of a
    // number.
    return of(
        Files.readAllLines(Path.of("/proc/self/uid_map"), UTF_8),
        Files.readAllLines(Path.of("/proc/sys/kernel/overflowuid"), UTF_8).get(0));
  }

  /**
   * Parses the lines of two files.
   *
   * @param map lines of a first id inside, a first id outside, and a count
   * @param others the id as which unmapped users appear
   */
  public static UserNamespace of(List<String> map, String others) {
    for (String line : map) {
      String[] numbers = line.strip().split("\\s+", -1);
      if (numbers.length == 3 && numbers[1].equals("0")) {
        return new UserNamespace(Integer.parseUnsignedInt(numbers[0]));
      }
    }
    return new UserNamespace(Integer.parseUnsignedInt(others.strip()));
  }
}
