package io.pmfs.machine;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * How the users outside of a user namespace show in it; user_namespaces(7).
 *
 * @param root the number as which root of the machine shows, or of the namespace above
 */
public record UserNamespace(int root) {
  public static UserNamespace ofProcess() throws IOException {
    // Lines: Files.readString begins with one byte, and of a number the kernel gives no more then.
    return of(
        Files.readAllLines(Path.of("/proc/self/uid_map"), UTF_8),
        Files.readAllLines(Path.of("/proc/sys/kernel/overflowuid"), UTF_8).get(0));
  }

  /**
   * From the lines of two files.
   *
   * @param map each with a first number inside, a first number outside, and how many
   * @param others the number as which users without a line show
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
