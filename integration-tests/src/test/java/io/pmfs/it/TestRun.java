package io.pmfs.it;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * This process of tests, in the names of what it makes outside of itself: a later run knows by them
 * what was left by one that was killed. A process is known by its number and its start, and where
 * that number counts by the boot and the namespace.
 */
final class TestRun {
  static final String PREFIX = "pmfs-it-";

  private static final AtomicInteger MADE = new AtomicInteger();

  private TestRun() {}

  /** A name that nothing else has; it goes on with a dot in the names of its parts. */
  static String newName() {
    long self = ProcessHandle.current().pid();
    return PREFIX
        + String.join(
            ".",
            place(),
            Long.toString(self),
            startTicks(self),
            Integer.toString(MADE.incrementAndGet()));
  }

  /** Whether a name or one of its parts was made here by a process that is gone. */
  static boolean isStale(String name) {
    if (!name.startsWith(PREFIX + place() + ".")) {
      return false;
    }
    String[] parts = name.substring(PREFIX.length()).split("\\.", -1);
    return parts.length >= 4 && !startTicks(Long.parseLong(parts[1])).equals(parts[2]);
  }

  static String place() {
    try {
      String boot = Files.readString(Path.of("/proc/sys/kernel/random/boot_id"));
      String processes = Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).toString();
      return boot.substring(0, 8) + "-" + processes.replaceAll("\\D", "");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** When a process started, in ticks since boot as in proc(5); empty if there is none. */
  private static String startTicks(long pid) {
    try {
      String stat = Files.readString(Path.of("/proc/" + pid + "/stat"), ISO_8859_1);
      return stat.substring(stat.lastIndexOf(')') + 2).split(" ", -1)[19];
    } catch (IOException e) {
      return "";
    }
  }
}
