package io.pmfs.cli;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Commands and options that users know from other programs, and what to write for pmfs instead. */
final class ForeignWords {
  private static final Map<String, String> COMMANDS =
      Map.ofEntries(
          Map.entry("warmup", "use pmfs stage"),
          Map.entry("preload", "use pmfs stage"),
          Map.entry("prefetch", "use pmfs stage"),
          Map.entry("list", "use pmfs status"),
          Map.entry("info", "use pmfs status"),
          Map.entry("version", "use pmfs --version"),
          Map.entry("start", "use pmfs mount"),
          Map.entry("stop", "use pmfs umount"),
          Map.entry("flush", "use pmfs drain"),
          Map.entry("purge", "use pmfs cache --purge"));

  private static final String READ_ONLY =
      "leave it out: a mount is read-only unless you give --writable";

  private static final Map<String, String> OF_MOUNTS =
      Map.of(
          "-o", "write --NAME, such as --allow-other; a mount is read-only without --writable",
          "-r", READ_ONLY,
          "--ro", READ_ONLY,
          "--readonly", READ_ONLY,
          "--read-only", READ_ONLY);

  private static final Map<String, Map<String, String>> BY_COMMAND =
      Map.of(
          "pmfs", COMMANDS,
          "mount", OF_MOUNTS,
          "run", OF_MOUNTS,
          "config",
              Map.of(
                  "--set",
                  "this command only shows; write KEY = \"VALUE\" into the file that pmfs config"
                      + " --help names"));

  private ForeignWords() {}

  /** What to write instead of an unknown command or option of a command; null if unknown here. */
  static @Nullable String remedy(String command, String word) {
    return BY_COMMAND.getOrDefault(command, Map.of()).get(word);
  }
}
