package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The daemon's peak of resident memory in each kind of task, against the bound that
 * docs/operations.md states.
 */
@OnRequest(value = "large", what = "tasks on 100,000 files")
final class MemoryIT {
  private static final int FILES = 100_000;

  private static final Duration LIFETIME = Duration.ofMinutes(FILES / 4000);

  /** Small files in directories of a thousand, a list of their paths in another order. */
  private static final String MAKE =
      """
      import os, random, sys
      root, files = sys.argv[1], int(sys.argv[2])
      random.seed(1)
      paths = []
      for i in range(files):
          directory = f"d{i // 1000:03}"
          if i % 1000 == 0:
              os.makedirs(f"{root}/tree/{directory}")
          paths.append(f"{directory}/{i}")
          with open(f"{root}/tree/{paths[-1]}", "wb") as file:
              file.write(b"%d\\n" % i * (i % 200 + 1))
      random.shuffle(paths)
      with open(f"{root}/order", "w") as order:
          order.write("".join(path + "\\n" for path in paths))
      """;

  /** The bound stands out on its page. */
  private static final Pattern BOUND = Pattern.compile("\\*\\*(\\d+) MiB\\*\\*");

  @Installed private Installation pmfs;
  private Path made;

  @BeforeEach
  void makeTree() {
    made = pmfs.directory("made");
    run("python3", "-c", MAKE, made.toString(), "" + FILES);
  }

  private static void run(String... line) {
    Command.run(Map.of(), LIFETIME, List.of(line)).expect(0);
  }

  @Test
  void tasks_ofEachKind_stayWithinTheBound() {
    try (MountedPmfs mount = pmfs.mount(LIFETIME, made.resolve("tree"))) {
      task(mount, "metadata", "stage", "--metadata-only");
      prefetch(mount);
      task(mount, "evict", "evict");
      task(mount, "stage", "stage", "--jobs", "64");
      assertThat(mount.status().number("tiers.0.copies")).isEqualTo(FILES);
      task(mount, "check", "stage", "--check");
      task(mount, "verify", "verify");
      task(mount, "verify --source", "verify", "--source");
      readAll(mount);
    }
  }

  @Test
  void tasks_onShards_stayWithinTheBound() {
    run(
        "bash",
        "-euc",
        "cd \"$1\"; mkdir shards; for d in tree/*; do tar -cf shards/${d##*/}.tar $d; done",
        "tar",
        made.toString());
    try (MountedPmfs mount = pmfs.mount(LIFETIME, made.resolve("shards"), "--source-form", "tar")) {
      task(mount, "stage of shards", "stage", "--jobs", "64");
      assertThat(mount.status().number("tiers.0.copies")).isEqualTo(FILES);
      task(mount, "verify --source of shards", "verify", "--source");
    }
  }

  @Test
  void tasks_onCompressedShardsAndCopies_stayWithinTheBound() {
    Path shards = made.resolve("packed");
    String tree = made.resolve("tree").toString();
    pmfs.run(
            LIFETIME,
            "pack",
            tree,
            shards.toString(),
            "--compression",
            "zstd",
            "--shard-size",
            "4M")
        .expect(0);
    try (MountedPmfs mount = pmfs.mount(LIFETIME, shards, "--compression", "zstd")) {
      task(mount, "stage of compressed shards", "stage", "--jobs", "64");
      assertThat(mount.status().number("tiers.0.copies")).isEqualTo(FILES);
      task(mount, "verify of compressed copies", "verify");
      readAll(mount);
    }
  }

  /** Behind it comes a reader of the same order. */
  private void prefetch(MountedPmfs mount) {
    String order = made.resolve("order").toString();
    forgetPeak(mount.pid());
    Process client =
        pmfs.start(
            ProcessBuilder.Redirect.DISCARD,
            "stage",
            "--order",
            order,
            "--window",
            "1G",
            mount.mountpoint().toString());
    mount.awaitCopies(1, LIFETIME);
    run(
        "bash",
        "-euc",
        "cd '" + mount.mountpoint() + "'; xargs -n 500 cat <'" + order + "' | wc -c");
    Await.until("the prefetch ended", LIFETIME, () -> !client.isAlive());
    assertThat(client.exitValue()).isZero();
    check(mount, "prefetch");
  }

  private void task(MountedPmfs mount, String name, String command, String... options) {
    String[] line = new String[options.length + 2];
    line[0] = command;
    System.arraycopy(options, 0, line, 1, options.length);
    line[line.length - 1] = mount.mountpoint().toString();
    forgetPeak(mount.pid());
    pmfs.run(LIFETIME, line).expect(0);
    check(mount, name);
  }

  private static void readAll(MountedPmfs mount) {
    forgetPeak(mount.pid());
    String read = "find . -type f -print0 | xargs -0 -P 4 -n 500 cat | wc -c";
    run("bash", "-euc", "cd '" + mount.mountpoint() + "'; " + read);
    check(mount, "four readers");
  }

  private static void check(MountedPmfs mount, String name) {
    long peak = peakMebibytes(mount.pid());
    System.out.printf("peak of %,d files, %s: %d MiB%n", FILES, name, peak);
    assertThat(peak).as("peak of resident memory in MiB: %s", name).isBetween(50L, bound());
  }

  /** From now on the peak is that of what comes: proc(5), clear_refs. */
  private static void forgetPeak(long pid) {
    if (Machine.isRoot()) {
      try {
        Files.writeString(Path.of("/proc/" + pid + "/clear_refs"), "5");
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private static long peakMebibytes(long pid) {
    return number(Path.of("/proc/" + pid + "/status"), Pattern.compile("VmHWM:\\s+(\\d+) kB"))
        >> 10;
  }

  /** The sum at the end of the table, the only figure of that form on the page. */
  private static long bound() {
    return number(Installation.launcherOfCheckout().resolveSibling("../docs/operations.md"), BOUND);
  }

  private static long number(Path file, Pattern pattern) {
    try {
      Matcher matcher = pattern.matcher(Files.readString(file, UTF_8));
      assertThat(matcher.find()).as("%s in %s", pattern, file).isTrue();
      return Long.parseLong(matcher.group(1));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
