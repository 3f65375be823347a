package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tar files that are mounted are what tar unpacks of them. */
final class ShardMountIT {
  private static final Duration LIFETIME = Duration.ofMinutes(5);

  /** Three shards with what tar files hold, and out/ with what tar makes of them. */
  private static final String SHARDS =
      """
      for s in one two three; do
        mkdir -p tree/$s/d/e out/$s && cd tree/$s
        for i in $(seq 60); do head -c $((i * 1777)) /dev/urandom > d/$i.jpg; echo $i > d/$i.cls; done
        : > d/e/empty; ln d/60.jpg d/e/hard; ln -s ../1.cls d/e/soft; ln -s nowhere dangling; mkfifo pipe
        name=$(printf 'n%.0s' {1..160}); mkdir -p $name/$name; echo deep > $name/$name/$name
        printf latin > "$(printf 'caf\\351')"; printf space > ' s p '
        truncate -s 1M sparse; printf piece | dd of=sparse bs=1 seek=300000 conv=notrunc status=none
        chmod 640 d/2.cls; chmod 1777 d/e; touch -d '2001-02-03 04:05:06.789012345' d/3.jpg d d/e
        cd ../..
      done
      tar --format=gnu -cf source/one.tar -C tree/one .
      tar --format=pax -cf source/two.tar -C tree/two .
      tar --format=pax -S -cf source/three.tar -C tree/three .
      for s in one two three; do tar -xpf source/$s.tar -C out/$s; done
      """;

  /** Every attribute that a tar file has of every name. */
  private static final String LIST =
      "find . -mindepth %d \\( -type d -printf '%%P %%y %%m %%U %%G %%T@\\n' \\) -o"
          + " -printf '%%P %%y %%m %%U %%G %%n %%s %%T@ %%l\\n' | LC_ALL=C sort";

  @Installed private Installation pmfs;
  private Path source;
  private Path out;

  @BeforeEach
  void makeShards() {
    source = pmfs.directory("source");
    out = pmfs.directory("out");
    shell(pmfs.scratch().root(), SHARDS);
  }

  private MountedPmfs unpacked(BridgeMode mode) {
    return mode.mount(pmfs, LIFETIME, source, "--source-form", "tar");
  }

  private static String shell(Path directory, String script) {
    return Command.run("bash", "-euc", "cd '" + directory + "'; " + script).expect(0).out();
  }

  private static void assertSame(Path unpacked, Path shown, int depth) {
    assertThat(shell(shown, LIST.formatted(depth)))
        .isEqualTo(shell(unpacked, LIST.formatted(depth)));
    assertThat(sums(unpacked, shown)).isEqualTo(sums(unpacked, unpacked));
  }

  /** The contents that a directory has under the names of another's files. */
  private static String sums(Path names, Path directory) {
    return shell(
        names,
        "find . -type f -print0 | LC_ALL=C sort -z | (cd '%s'; xargs -0 sha256sum)"
            .formatted(directory));
  }

  @ParameterizedTest
  @EnumSource
  void directoryOfTarFiles_isADirectoryOfEach(BridgeMode mode) {
    mode.runsInEveryRunIf(BridgeMode.PASSTHROUGH);
    try (MountedPmfs mount = unpacked(mode)) {
      // What is unpacked has the times of the directories' own members, but for the outermost.
      assertSame(out, mount.mountpoint(), 2);
      assertThat(shell(mount.mountpoint(), "ls")).isEqualTo("one\nthree\ntwo\n");
      assertThat(mount.status().number("sourceOperations.opens"))
          .as("shards are opened, not members")
          .isLessThan(10);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"PAGE_CACHE", "JNR"})
  void singleTarFile_isWhatIsInIt(BridgeMode mode) {
    mode.runsInEveryRunIf(BridgeMode.PAGE_CACHE);
    try (MountedPmfs mount = mode.mount(pmfs, LIFETIME, source.resolve("two.tar"))) {
      assertSame(out.resolve("two"), mount.mountpoint(), 1);
      shell(
          pmfs.scratch().root(),
          "cp -a mnt/. copied && find copied -type f | wc -l && diff -r --no-dereference copied/d"
              + " out/two/d");
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"PAGE_CACHE", "JNR"})
  void tarOfTarFiles_nested_isADirectoryOfEach(BridgeMode mode) {
    mode.runsInEveryRunIf(BridgeMode.JNR);
    shell(source, "tar -cf ../all.tar one.tar two.tar three.tar");
    Path all = pmfs.scratch().root().resolve("all.tar");
    try (MountedPmfs mount = mode.mount(pmfs, LIFETIME, all, "--nested")) {
      assertSame(out, mount.mountpoint(), 2);
    }
    try (MountedPmfs mount = mode.mount(pmfs, LIFETIME, all)) {
      assertThat(shell(mount.mountpoint(), "ls")).isEqualTo("one.tar\nthree.tar\ntwo.tar\n");
      shell(source, "cmp one.tar '" + mount.mountpoint() + "/one.tar'");
    }
  }

  @Test
  @OnRequest("cases")
  void walkAndReadAtOnce_thenFromTheTierAlone() {
    try (MountedPmfs mount = unpacked(BridgeMode.PAGE_CACHE)) {
      CompletableFuture<Void> other =
          CompletableFuture.runAsync(
              () -> {
                for (int round = 0; round < 3; round++) {
                  shell(
                      mount.mountpoint(),
                      "find . -type f -print0 | shuf -z | xargs -0 cat > /dev/null");
                }
              });
      assertSame(out, mount.mountpoint(), 2);
      other.join();
      Status warm = mount.awaitStagingIdle();
      Machine.forget(mount.mountpoint());
      assertSame(out, mount.mountpoint(), 2);
      Status again = mount.status();
      assertThat(again.number("sourceOperations.reads"))
          .isEqualTo(warm.number("sourceOperations.reads"));
      assertThat(again.number("sourceOperations.opens"))
          .isEqualTo(warm.number("sourceOperations.opens"));
    }
    try (MountedPmfs mount = unpacked(BridgeMode.PAGE_CACHE)) {
      assertSame(out, mount.mountpoint(), 2);
      assertThat(mount.status().number("sourceOperations.bytes")).as("read of the shards").isZero();
    }
  }

  @Test
  @OnRequest("cases")
  void shardThatChanged_isServedNew_andTheOthersFromTheirCopies() {
    try (MountedPmfs mount = unpacked(BridgeMode.PAGE_CACHE)) {
      assertSame(out, mount.mountpoint(), 2);
      mount.awaitStagingIdle();
    }
    shell(
        pmfs.scratch().root(),
        """
        echo changed > tree/one/d/1.cls; echo new > tree/one/d/added; rm tree/one/d/2.jpg
        touch -r out/one/d tree/one/d
        cp -p tree/one/d/1.jpg stamp; head -c "$(stat -c %s stamp)" /dev/zero > tree/one/d/1.jpg
        touch -r stamp tree/one/d/1.jpg
        tar -cf source/one.tar -C tree/one .; rm -r out/one; mkdir out/one; tar -xpf source/one.tar -C out/one
        """);
    try (MountedPmfs mount = unpacked(BridgeMode.PAGE_CACHE)) {
      assertSame(out, mount.mountpoint(), 2);
      // One for the index, and for its members.
      assertThat(mount.status().number("sourceOperations.bytes"))
          .isLessThan(2 * shardBytes("one.tar"));
    }
  }

  private long shardBytes(String name) {
    return source.resolve(name).toFile().length();
  }

  @Test
  @OnRequest("cases")
  void formOfTheSource_isChosen_andKeptApart() throws Exception {
    try (MountedPmfs mount = BridgeMode.PAGE_CACHE.mount(pmfs, LIFETIME, source)) {
      assertThat(shell(mount.mountpoint(), "ls")).isEqualTo("one.tar\nthree.tar\ntwo.tar\n");
      shell(source, "cmp one.tar '" + mount.mountpoint() + "/one.tar'");
    }
    try (MountedPmfs mount = BridgeMode.PAGE_CACHE.mount(pmfs, LIFETIME, source, "--nested")) {
      assertSame(out, mount.mountpoint(), 2);
    }
    Files.writeString(source.resolve("README"), "about the shards");
    try (MountedPmfs mount = BridgeMode.PAGE_CACHE.mount(pmfs, LIFETIME, source)) {
      assertThat(shell(mount.mountpoint(), "ls")).startsWith("README\none.tar");
    }
    try (MountedPmfs mount = unpacked(BridgeMode.PAGE_CACHE)) {
      assertSame(out, mount.mountpoint(), 2);
    }
  }

  @Test
  @OnRequest("cases")
  void membersThatNoFileSystemHolds_areLeftOutAndCountedInTheLog() throws Exception {
    shell(
        pmfs.scratch().root(),
        "cd tree; tar -P -cf ../odd.tar one/d/1.cls one/../two/d/2.cls one/../two/d/3.cls");
    Path odd = pmfs.scratch().root().resolve("odd.tar");
    try (MountedPmfs mount = BridgeMode.PAGE_CACHE.mount(pmfs, LIFETIME, odd)) {
      assertThat(shell(mount.mountpoint(), "find . -type f")).isEqualTo("./one/d/1.cls\n");
      assertThat(Files.readString(Path.of(mount.status().text("logFile"))))
          .contains("2 names that lead outside, or that no file system can have, for example ");
    }
  }

  @Test
  void sourceThatCannotBeServed_isOneLineWithTheRemedy() throws Exception {
    shell(source, "head -c 100000 one.tar > cut.tar");
    String mountpoint = pmfs.mountpoint().toString();
    Command cut =
        pmfs.run(
            "mount",
            "--source-form",
            "tar",
            "--tier",
            "ssd:" + pmfs.tier(),
            source.toString(),
            mountpoint);
    assertThat(cut.exit()).isEqualTo(1);
    assertThat(cut.errorLines())
        .singleElement()
        .asString()
        .contains("cut.tar: not a valid tar file: at offset ");

    Files.delete(source.resolve("cut.tar"));
    Files.writeString(source.resolve("pmfs-pack.partial"), "");
    Command partial =
        pmfs.run("mount", "--tier", "ssd:" + pmfs.tier(), source.toString(), mountpoint);
    assertThat(partial.exit()).isEqualTo(1);
    assertThat(partial.errorLines()).singleElement().asString().contains("run it again");
  }
}
