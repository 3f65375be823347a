package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What pmfs pack writes, against the source: unpacked by tar, and mounted. */
final class PackIT {
  /** One line for each name: all that tar keeps of it. Link counts of directories are not. */
  private static final String LIST =
      "find . \\( -type d -printf '%p %y %m %U %G %T@\\n' \\)"
          + " -o -printf '%p %y %m %U %G %T@ %n %l\\n' | LC_ALL=C sort";

  @Installed(byRoot = true)
  private Installation pmfs;

  private Path source;
  private Path shards;

  @BeforeEach
  void makeSource() throws IOException {
    source = pmfs.directory("source");
    shards = pmfs.scratch().root().resolve("shards");
    shell(
        source,
        "mkdir -p a/b a/empty 'sp ace' deep/$(printf 'd%.0s' $(seq 120))",
        "for i in $(seq 60); do head -c $((i * 777)) /dev/urandom > a/$i.bin; echo $i > a/$i.cls;"
            + " done",
        "seq 100000 > a/b/text; head -c 3000000 /dev/urandom > large; : > nothing",
        "truncate -s 5000000 sparse",
        "printf x > \"$(printf 'bad\\377\\376')\"; printf y > \"$(printf 'bad\\377%0120d' 1)\"",
        "printf z > \"$(printf 'm\\303\\274ller')\"; cp a/1.bin deep/d*/",
        "ln a/b/text a/hard; ln a/b/text zhard; ln -s a/b/text link; ln -s nowhere dangling",
        "mkfifo fifo; mknod null c 1 3; ln fifo fifo2",
        "chown 12345:54321 a/1.bin; chown -h 7:8 link; chmod 4711 a/2.bin; chmod 01750 a/empty",
        "touch -d '1965-01-02 03:04:05.5' a/3.bin; touch -d '2001-02-03 04:05:06' a/4.bin",
        "touch -d '2001-02-03 04:05:06.123456789' a/empty a/b a .");
  }

  private static Command shell(Path directory, String... lines) {
    String script = "set -e; cd '" + directory + "'; " + String.join("; ", lines);
    return Command.run("bash", "-c", script).expect(0);
  }

  private Command pack(String... options) {
    List<String> line =
        new ArrayList<>(
            List.of("pack", source.toString(), shards.toString(), "--shard-size", "300KiB"));
    line.addAll(List.of(options));
    return pmfs.run(line.toArray(String[]::new));
  }

  private Path unpack() {
    Path unpacked = pmfs.directory("unpacked");
    shell(
        unpacked,
        // In any order: each shard stands for itself.
        "for shard in $(ls "
            + shards
            + "/*.tar* | sort -R); do case $shard in "
            + "*.zst) zstd -qdc $shard | tar -xpf - ;; "
            + "*) tar -xpf $shard; tar -tf $shard > /dev/null ;; esac; done");
    return unpacked;
  }

  private void assertSame(Path shown) {
    assertThat(shell(shown, LIST).out().lines())
        .containsExactlyElementsOf(shell(source, LIST).out().lines().toList());
    String sums = "find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum";
    assertThat(shell(shown, sums).out()).isEqualTo(shell(source, sums).out());
  }

  @ParameterizedTest
  @CsvSource({"name, none", "size, none", "shuffle:5, none", "shuffle:5, zstd"})
  void pack_unpackedByTar_isTheSource(String sort, String compression) {
    Requested.assume("cases", sort.equals("name") || compression.equals("zstd"), "");
    pack("--sort", sort, "--compression", compression).expect(0);
    assertSame(unpack());
    assertThat(pmfs.run("pack", "--check", shards.toString()).exit()).isZero();
  }

  @Test
  void pack_readByPython_hasEachMember() {
    pack().expect(0);
    String script =
        """
        import glob, sys, tarfile
        for shard in sorted(glob.glob(sys.argv[1] + '/*.tar')):
            with tarfile.open(shard) as tar:
                for member in tar:
                    if member.isreg():
                        assert len(tar.extractfile(member).read()) == member.size
                        print(member.name)
        """;
    Command python = Command.run("python3", "-c", script, shards.toString()).expect(0);
    // Of the three names of one file it is zhard that has the content: a directory's files come
    // before
    // those of the directories in it.
    assertThat(python.out().lines().filter(name -> name.startsWith("a/"))).hasSize(120);
    assertThat(python.out().lines()).contains("zhard").doesNotContain("a/hard", "a/b/text");
  }

  @ParameterizedTest
  @CsvSource({"name, none", "shuffle:5, zstd"})
  void pack_mounted_showsTheSource(String sort, String compression) {
    Requested.assume("cases", compression.equals("zstd"), "");
    pack("--sort", sort, "--compression", compression).expect(0);
    try (MountedPmfs mount = pmfs.mount(shards)) {
      assertSame(mount.mountpoint());
    }
  }

  @Test
  @OnRequest("cases")
  void pack_ofAMount_isThatOfItsSource() {
    try (MountedPmfs mount = pmfs.mount(source)) {
      pmfs.run("pack", mount.mountpoint().toString(), shards.toString()).expect(0);
    }
    assertSame(unpack());
  }

  private Map<String, Object> shardFiles() throws IOException {
    Map<String, Object> files = new HashMap<>();
    try (Stream<Path> list = Files.list(shards)) {
      for (Path file : list.filter(f -> f.toString().endsWith(".tar")).toList()) {
        files.put(
            file.getFileName().toString(), Files.readAttributes(file, "unix:ino,lastModifiedTime"));
      }
    }
    return files;
  }

  private void moreFiles(int count) {
    shell(
        source,
        "mkdir more",
        "for i in $(seq " + count + "); do head -c 200000 /dev/urandom > more/$i; done");
  }

  @Test
  @OnRequest("cases")
  void pack_killed_isRefusedByMountAndGoesOn() throws Exception {
    moreFiles(300);
    Process running =
        pmfs.start(
            Redirect.DISCARD,
            "pack",
            source.toString(),
            shards.toString(),
            "--shard-size",
            "300KiB");
    Await.until(
        "some shards",
        Duration.ofSeconds(60),
        () ->
            !running.isAlive() || (Files.exists(shards) && Installation.files(shards).size() > 12));
    running.destroyForcibly().waitFor();
    assertThat(shards.resolve("pmfs-pack.partial")).exists();
    Map<String, Object> finished = shardFiles();
    Command mount = pmfs.run(pmfs.mountArguments(shards, pmfs.mountpoint()));
    assertThat(mount.exit()).as("%s", mount).isNotZero();
    assertThat(mount.errorLines()).hasSize(1);
    Command again = pack().expect(0);
    assertThat(again.out()).contains(" already there)");
    Map<String, Object> after = shardFiles();
    // The last of them may have been renamed and not been noted.
    long kept =
        finished.entrySet().stream()
            .filter(e -> e.getValue().equals(after.get(e.getKey())))
            .count();
    assertThat(kept)
        .isGreaterThanOrEqualTo(finished.size() - Runtime.getRuntime().availableProcessors());
    assertSame(unpack());
  }

  @Test
  @OnRequest("cases")
  void pack_interrupted_saysSoAndGoesOn() throws Exception {
    moreFiles(300);
    Path output = pmfs.scratch().root().resolve("output");
    Process running =
        pmfs.start(
            Redirect.to(output.toFile()),
            "pack",
            source.toString(),
            shards.toString(),
            "--shard-size",
            "300KiB");
    Await.until(
        "some shards",
        Duration.ofSeconds(60),
        () ->
            !running.isAlive() || (Files.exists(shards) && Installation.files(shards).size() > 12));
    running.destroy();
    running.waitFor();
    assertThat(shards.resolve("pmfs-pack.partial")).exists();
    assertThat(Installation.files(shards)).noneMatch(f -> f.toString().endsWith(".tmp"));
    pack().expect(0);
    assertSame(unpack());
  }

  @Test
  void disk_thatIsFull_isOneLineAndThePackGoesOn() {
    Path disk = pmfs.scratch().tmpfs("disk", "size=3M");
    shards = disk.resolve("shards");
    Command full = pack();
    full.expect(1);
    assertThat(full.errorLines()).as("%s", full).hasSize(1);
    assertThat(full.err()).contains(shards.toString(), "No space left");
    assertThat(shards.resolve("pmfs-pack.json")).doesNotExist();
    assertThat(Installation.files(shards)).noneMatch(f -> f.toString().endsWith(".tmp"));
    Command.run("mount", "-o", "remount,size=100M", disk.toString()).expect(0);
    assertThat(pack().expect(0).out()).contains(" already there)");
    assertSame(unpack());
  }

  @Test
  void directory_insideTheSource_isRefused() {
    Command inside = pmfs.run("pack", source.toString(), source.resolve("a/shards").toString());
    inside.expect(2);
    assertThat(inside.errorLines()).as("%s", inside).hasSize(1);
    assertThat(source.resolve("a/shards")).doesNotExist();
  }

  @Test
  void dryRun_writesNothingAndNamesTheShards() {
    Command plan = pack("--dry-run").expect(0);
    assertThat(plan.out()).contains("shard-000000.tar", "to be written");
    assertThat(shards).doesNotExist();
  }
}
