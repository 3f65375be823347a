package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** A real tree of at least 20,000 files, compared in whole. */
@OnRequest(value = "large", what = "a real tree of 20,000 files")
final class LargeTreeIT {
  private static final int MIN_FILES = 20_000;

  /**
   * Copies what this machine's packages and local repository hold: many small files, links and some
   * large files. A machine with too little of that gets the rest made up.
   */
  private static final String COLLECT =
      """
      set -e
      cd /
      for from in usr/share usr/lib usr/include "${HOME#/}/.m2/repository" etc usr/bin var/lib/dpkg; do
        [ -d "$from" ] || continue
        find "$from" -xdev -readable \\( -type l -o -type f -size -512k \\) -print0 | head -z -n 4000
        find "$from" -xdev -readable -type f -size +4M -size -32M -print0 | head -z -n 2
      done | tar -c --null --no-recursion -T - | tar -xp -C "$1"
      i=$(find "$1" -type f | wc -l)
      mkdir "$1/made-up"
      while [ "$i" -lt "$2" ]; do
        mkdir -p "$1/made-up/$((i / 100))"
        echo "$i" > "$1/made-up/$((i / 100))/$i"
        i=$((i + 1))
      done
      """;

  @Test
  void tree_readTwice_isEqualAndAsksTheSourceOnlyOnce() {
    Machine.requireFuse();
    try (Installation pmfs = new Installation()) {
      Path source = pmfs.directory("source");
      Command.run(
              Map.of(),
              Duration.ofMinutes(3),
              List.of("bash", "-c", COLLECT, "collect", source.toString(), "" + MIN_FILES))
          .expect(0);
      assertThat(Long.parseLong(shell("find '" + source + "' -type f | wc -l")))
          .isGreaterThanOrEqualTo(MIN_FILES);
      long bytes = Long.parseLong(shell("du -sb '" + source + "' | cut -f1"));
      try (MountedPmfs mount = pmfs.mount(Duration.ofMinutes(5), source)) {
        assertEqual(source, mount.mountpoint());
        Status first = mount.awaitStagingIdle();
        assertThat(first.number("sourceOperations.total")).isPositive();
        assertThat(first.number("sourceOperations.bytes")).isBetween(bytes / 2, 2 * bytes);
        assertThat(first.number("tiers.0.copies")).isPositive();

        assertEqual(source, mount.mountpoint());
        if (Machine.isRoot()) {
          Machine.dropCaches();
          assertEqual(source, mount.mountpoint());
        }
        Status last = mount.status();
        assertThat(withoutStatfs(last))
            .as("source operations after more epochs: %s, before: %s", last, first)
            .isEqualTo(withoutStatfs(first));
      }
      if (Machine.isRoot()) {
        assertEqualInPassthrough(pmfs, source);
      }
    }
  }

  /** More files than are registered with the kernel at once. */
  private static void assertEqualInPassthrough(Installation pmfs, Path source) {
    try (MountedPmfs mount = BridgeMode.PASSTHROUGH.mount(pmfs, Duration.ofMinutes(5), source)) {
      assertEqual(source, mount.mountpoint());
      assertThat(mount.status().text("readMode")).isEqualTo("passthrough");
    }
  }

  /** find asks what kind of file system it walks, and free space is never answered from memory. */
  private static long withoutStatfs(Status status) {
    return status.number("sourceOperations.total") - status.number("sourceOperations.statfs");
  }

  private static void assertEqual(Path source, Path mountpoint) {
    Set<String> expected = listing(source);
    Set<String> seen = listing(mountpoint);
    assertThat(expected).hasSizeGreaterThanOrEqualTo(MIN_FILES);
    assertThat(missing(expected, seen)).as("in the source and not so in the mount").isEmpty();
    assertThat(missing(seen, expected)).as("in the mount and not so in the source").isEmpty();
    Command.run(
            Map.of(),
            Duration.ofMinutes(3),
            List.of("diff", "-r", "--no-dereference", source.toString(), mountpoint.toString()))
        .expect(0);
  }

  private static Set<String> listing(Path tree) {
    Command find =
        Command.run("find", tree.toString(), "-printf", "%P %y %m %U %G %s %b %n %T@ %C@ %l\\0");
    return new HashSet<>(List.of(find.expect(0).out().split("\0", -1)));
  }

  private static List<String> missing(Set<String> from, Set<String> in) {
    return from.stream().filter(line -> !in.contains(line)).sorted().limit(10).toList();
  }

  private static String shell(String script) {
    return Command.run("sh", "-c", script).expect(0).out().strip();
  }
}
