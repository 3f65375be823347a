package io.pmfs.shards;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class TarScannerTest {
  @TempDir private Path directory;

  @Test
  void scan_file_knowsWhereItsContentIs() throws Exception {
    byte[] tar = new Tar().file("a", "x".repeat(700)).file("d/b", "hello").end();

    Scan scan = Scan.of(tar);

    assertThat(scan.members.keySet()).containsExactly("a", "d/b");
    ShardMember b = scan.member("d/b");
    assertThat(new String(tar, (int) b.data(), (int) b.size(), ISO_8859_1)).isEqualTo("hello");
    assertThat(b.position()).isEqualTo(512 + 1024);
    assertThat(b.mode()).isEqualTo(0100640);
    assertThat(b.modificationTime()).isEqualTo(Instant.ofEpochSecond(1_000_000_000));
    assertThat(scan.warnings).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({
    "./a, a",
    "/a, a",
    "//d//./b, d/b",
    "d/b/, d/b",
    "..a/b.., ..a/b..",
    "-, -",
    "./.a, .a"
  })
  void scan_name_isTidied(String name, String path) throws Exception {
    Scan scan = Scan.of(new Tar().directory(name).end());

    assertThat(scan.members.keySet()).containsExactly(path);
  }

  @ParameterizedTest
  @ValueSource(strings = {"../a", "a/../b", "..", "/..", "a/.."})
  void scan_nameThatLeadsOutside_isLeftOut(String name) throws Exception {
    Scan scan = Scan.of(new Tar().file(name, "x").file("b", "").end());

    assertThat(scan.members.keySet()).containsExactly("b");
    assertThat(scan.warnings).containsOnlyKeys(Warning.BAD_NAME);
  }

  @Test
  void scan_fileWithoutName_isLeftOut() throws Exception {
    Scan scan = Scan.of(new Tar().file("./", "").directory("./").end());

    // Before POSIX a trailing slash marked a directory, so both are the root.
    assertThat(scan.members.keySet()).containsExactly("");
    assertThat(Scan.of(new Tar().symlink(".", "a").end()).warnings)
        .containsOnlyKeys(Warning.BAD_NAME);
  }

  @Test
  void scan_namesOfAnyBytes_areKept() throws Exception {
    String name = "caf\u00e9\u0001\u00ff";

    Scan scan =
        Scan.of(
            new Tar()
                .file(name, "")
                .pax('x', "path=p" + name, "linkpath=l" + name)
                .symlink("short", "short")
                .add((byte) 'L', "././@LongLink", "", 5 + name.length())
                .data("long" + name + "\0")
                .file("short", "")
                .end());

    assertThat(scan.members.keySet()).containsExactly(name, "p" + name, "long" + name);
    assertThat(scan.member("p" + name).target()).isEqualTo(FileName.ofLatin1("l" + name));
  }

  @Test
  void scan_extendedHeader_overrulesTheHeader() throws Exception {
    Scan scan =
        Scan.of(
            new Tar()
                .pax('g', "uid=7", "gid=9", "mtime=5")
                .pax('x', "size=3", "uid=4294967295", "mtime=-1.25", "gid=", "comment=none")
                .add((byte) '0', "a", "", 0)
                .data("abc")
                .file("b", "")
                .end());

    ShardMember a = scan.member("a");
    assertThat(a.size()).isEqualTo(3);
    assertThat(a.uid()).isEqualTo(-1);
    assertThat(a.gid()).isZero();
    assertThat(a.modificationTime()).isEqualTo(Instant.ofEpochSecond(-2, 750_000_000));
    assertThat(scan.member("b").uid()).isEqualTo(7);
    assertThat(scan.member("b").modificationTime()).isEqualTo(Instant.ofEpochSecond(5));
  }

  @ParameterizedTest
  @CsvSource({
    "1.5, 1, 500000000",
    "1.1234567899, 1, 123456789",
    "-0.0000000001, -1, 999999999",
    "3., 3, 0",
    "-3, -3, 0",
    "5e-05, 0, 50000",
    "-1.5E-9, -1, 999999998",
    "1.7e+09, 1700000000, 0"
  })
  void scan_time_isCutToNanoseconds(String text, long seconds, int nanos) throws Exception {
    Scan scan = Scan.of(new Tar().pax('x', "mtime=" + text).file("a", "").end());

    assertThat(scan.member("a").modificationTime())
        .isEqualTo(Instant.ofEpochSecond(seconds, nanos));
  }

  @Test
  void scan_otherTypes_areShownAsSuch() throws Exception {
    Scan scan =
        Scan.of(
            new Tar()
                .symlink("l", "../x")
                .link("h", "./l")
                .add((byte) '6', "p", "", 0)
                .add((byte) '3', "c", "", 0)
                .add((byte) '7', "contiguous", "", 1)
                .data("x")
                .add((byte) 'Q', "unknown", "", 1)
                .data("x")
                .end());

    assertThat(scan.member("l").target()).isEqualTo(FileName.of("../x"));
    assertThat(scan.member("h").isHardLink()).isTrue();
    assertThat(scan.member("h").target()).isEqualTo(FileName.of("l"));
    assertThat(FileType.ofMode(scan.member("p").mode())).isEqualTo(FileType.FIFO);
    assertThat(FileType.ofMode(scan.member("c").mode())).isEqualTo(FileType.CHARACTER_DEVICE);
    assertThat(scan.member("contiguous").isRegular()).isTrue();
    assertThat(scan.member("unknown").isRegular()).isTrue();
  }

  @Test
  void scan_deviceNumbers_areComposedAsTheKernelDoes() throws Exception {
    Shell.run(
        directory,
        """
        cat > make.py <<'E'
        import tarfile
        t = tarfile.open('t.tar', 'w')
        i = tarfile.TarInfo('b'); i.type = tarfile.BLKTYPE; i.devmajor = 259; i.devminor = 70000
        t.addfile(i); t.close()
        E
        python3 make.py
        """);

    Scan scan = Scan.of(Files.readAllBytes(directory.resolve("t.tar")));

    assertThat(scan.member("b").device())
        .isEqualTo((259L << 8) | (70000 & 0xff) | ((70000L & ~0xff) << 12));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--format=gnu -S",
        "--format=pax -S --sparse-version=0.0",
        "--format=pax -S --sparse-version=0.1",
        "--format=pax -S --sparse-version=1.0"
      })
  void scan_sparseMember_isAsLargeAsItWas(String format) throws Exception {
    Shell.run(
        directory,
        """
        truncate -s 3000000 f
        for i in $(seq 0 40); do printf "piece$i" | dd of=f bs=1 seek=$((i * 65536)) conv=notrunc status=none; done
        printf after > g
        tar %s --hole-detection=raw -cf t.tar f g
        """
            .formatted(format));

    byte[] tar = Files.readAllBytes(directory.resolve("t.tar"));
    Scan scan = Scan.of(tar);

    ShardMember f = scan.member("f");
    assertThat(f.size()).isEqualTo(3_000_000);
    assertThat(f.extents().count()).isEqualTo(41);
    for (int i = 0; i < 41; i++) {
      String piece = "piece" + i;
      int at = f.extents().at(i * 65536L);
      long place = f.data() + f.extents().stored(at, i * 65536L);
      assertThat(new String(tar, (int) place, piece.length(), ISO_8859_1)).isEqualTo(piece);
    }
    assertThat(scan.members.keySet()).containsExactly("f", "g");
  }

  @Test
  void scan_nested_isADirectoryOfItsMembers() throws Exception {
    byte[] inner = new Tar().file("x", "inner").link("y", "x").end();
    byte[] tar =
        new Tar()
            .file("d/n.tar", new String(inner, ISO_8859_1))
            .file("e.tar", "no tar file")
            .file(".tar", "")
            .end();

    Scan scan = Scan.of(tar, true);

    assertThat(scan.members.keySet()).containsExactly("d/n", "d/n/x", "d/n/y", "e.tar", ".tar");
    ShardMember x = scan.member("d/n/x");
    assertThat(new String(tar, (int) x.data(), 5, ISO_8859_1)).isEqualTo("inner");
    assertThat(scan.member("d/n").mode()).isEqualTo(040750);
    assertThat(scan.member("d/n/y").target()).isEqualTo(FileName.of("d/n/x"));
    assertThat(scan.warnings).containsOnlyKeys(Warning.NOT_NESTED);
    assertThat(Scan.of(tar).members.keySet()).containsExactly("d/n.tar", "e.tar", ".tar");
  }

  @Test
  void scan_cutShort_isRefusedUnlessOnlyTheEndIsMissing() throws Exception {
    Tar whole = new Tar().file("a", "x".repeat(600)).pax('x', "path=b").file("c", "last");
    byte[] tar = whole.bytes();

    for (int size = 0; size < tar.length; size++) {
      byte[] cut = java.util.Arrays.copyOf(tar, size);
      Throwable thrown = catchThrowable(() -> Scan.of(cut));
      boolean afterFirst = size >= 512 + 600 && size <= 512 + 1024;
      boolean afterLast = size >= tar.length - 512 + "last".length();
      if (size == 0 || afterFirst || afterLast) {
        assertThat(thrown).as("%d bytes", size).isNull();
        assertThat(Scan.of(cut).warnings).as("%d bytes", size).containsKey(Warning.NO_END);
      } else {
        assertThat(thrown)
            .as("%d bytes", size)
            .isInstanceOf(ShardException.class)
            .hasMessageStartingWith("s.tar: not a valid tar file: at offset ");
      }
    }
  }

  @Test
  void scan_moreAfterTheEnd_isAWarning() throws Exception {
    byte[] tar = new Tar().file("a", "x".repeat(600)).file("b", "b").end();
    byte[] padded = new Tar().raw(tar).raw(new byte[1 << 19]).bytes();
    byte[] joined = new Tar().raw(padded).raw(new Tar().file("c", "").end()).bytes();
    byte[] holed = new Tar().file("a", "").raw(new byte[512]).file("c", "").end();

    assertThat(Scan.of(tar).warnings).isEmpty();
    assertThat(Scan.of(padded).warnings).isEmpty();
    for (byte[] more : List.of(joined, holed)) {
      Scan scan = Scan.of(more);
      assertThat(scan.warnings).containsOnlyKeys(Warning.AFTER_END);
      assertThat(scan.members).containsKey("a").doesNotContainKey("c");
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"size=99999999999999999", "size=x", "mtime=now", "mtime=1e99", "size=1 000"})
  void scan_impossibleValue_isRefused(String record) {
    byte[] tar = new Tar().pax('x', record).file("a", "").end();

    assertThatThrownBy(() -> Scan.of(tar))
        .isInstanceOf(ShardException.class)
        .hasMessageContaining("s.tar: not a valid tar file: at offset 1024");
  }

  @Test
  void scan_garbage_namesTheOffset() {
    byte[] garbage = new byte[5000];
    new Random(1).nextBytes(garbage);

    assertThatThrownBy(() -> Scan.of(garbage))
        .hasMessage("s.tar: not a valid tar file: at offset 0: there is no tar header");
    assertThatThrownBy(() -> Scan.of(new Tar().file("a", "x").raw(garbage).bytes()))
        .hasMessage("s.tar: not a valid tar file: at offset 1024: there is no tar header");
  }

  @Test
  void scan_hugeExtendedHeader_isRefusedWithoutReadingIt() {
    byte[] tar = new Tar().add((byte) 'x', "pax", "", 1L << 40).bytes();

    assertThatThrownBy(() -> Scan.of(tar)).hasMessageContaining("too long");
  }

  /** Checksums are corrected, so that the fields behind them are tested. */
  @Test
  void scan_flippedBytes_failsAsDeclaredOrNotAtAll() throws Exception {
    Shell.run(
        directory,
        """
        truncate -s 100000 f; printf x | dd of=f bs=1 seek=50000 conv=notrunc status=none
        ln f g; ln -s f s; mkdir d; name=$(printf 'n%.0s' {1..150}); touch d/$name
        tar --format=gnu -S --hole-detection=raw -cf 1.tar f g s d
        tar --format=pax -S --hole-detection=raw --sparse-version=1.0 -cf 2.tar f g s d
        tar --format=pax -S --hole-detection=raw --sparse-version=0.1 -cf 3.tar f g s d
        tar --format=pax -S --hole-detection=raw --sparse-version=0.0 -cf 4.tar f g s d
        tar --format=ustar -cf 5.tar 1.tar
        """);
    long seed = System.nanoTime();
    System.out.println("seed " + seed);
    Random random = new Random(seed);
    for (int n = 1; n <= 5; n++) {
      byte[] tar = Files.readAllBytes(directory.resolve(n + ".tar"));
      for (int round = 0; round < 4000; round++) {
        byte[] damaged = tar.clone();
        for (int i = random.nextInt(3); i >= 0; i--) {
          int at = random.nextInt(Math.min(damaged.length, 8192));
          damaged[at] = (byte) random.nextInt(random.nextBoolean() ? 256 : 64);
          mend(damaged, at / 512 * 512);
        }
        Throwable thrown = catchThrowable(() -> Scan.of(damaged, true));
        if (thrown != null) {
          assertThat(thrown).as("seed %d", seed).isInstanceOf(ShardException.class);
        }
      }
    }
  }

  private static void mend(byte[] tar, int block) {
    int sum = 0;
    for (int i = 0; i < 512; i++) {
      sum += i >= 148 && i < 156 ? ' ' : tar[block + i] & 0xff;
    }
    byte[] text = "%06o\0 ".formatted(sum).getBytes(ISO_8859_1);
    System.arraycopy(text, 0, tar, block + 148, 8);
  }
}
