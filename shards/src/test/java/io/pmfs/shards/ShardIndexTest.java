package io.pmfs.shards;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The content of an index, member by member. */
final class ShardIndexTest {
  private static final IndexForm MERGED = new IndexForm(true, false);
  private static final IndexForm APART = new IndexForm(false, false);

  @TempDir private Path directory;

  private void write(String name, byte[] tar) throws IOException {
    Files.write(directory.resolve(name), tar);
    Files.setLastModifiedTime(
        directory.resolve(name), FileTime.from(Instant.ofEpochSecond(1_700_000_000, 5)));
  }

  private IndexSummary build(IndexForm form, String... shards) throws Exception {
    return BackingStores.build(directory, form, directory.resolve("index"), shards);
  }

  private ShardIndex index() throws IOException {
    return ShardIndex.open(directory.resolve("index"));
  }

  private static List<String> names(ShardIndex index, String path) throws IOException {
    List<String> names = new ArrayList<>();
    index.list(
        FileName.of(path),
        batch -> {
          batch.forEach(name -> names.add(name.toLatin1()));
          return true;
        });
    return names;
  }

  private static ShardMember member(ShardIndex index, String path) throws IOException {
    ShardMember member = index.member(FileName.ofLatin1(path));
    if (member == null) {
      throw new AssertionError(path + " is not there");
    }
    return member;
  }

  @Test
  void build_duplicates_theLastWins() throws Exception {
    write("a.tar", new Tar().file("x", "1").file("y", "a").file("x", "22").end());
    write("b.tar", new Tar().file("y", "bbb").directory("z").end());

    IndexSummary summary = build(MERGED, "a.tar", "b.tar");

    try (ShardIndex index = index()) {
      assertThat(names(index, "")).containsExactly("x", "y", "z");
      assertThat(member(index, "x").size()).isEqualTo(2);
      assertThat(member(index, "y").size()).isEqualTo(3);
      assertThat(member(index, "y").shard()).isEqualTo(1);
      assertThat(summary.members()).isEqualTo(4);
      assertThat(summary.warnings()).isZero();
      assertThat(index.summary()).isEqualTo(summary);
      assertThat(order(index, 0)).containsExactly("x");
      assertThat(order(index, 1)).containsExactly("y");
    }
  }

  private static List<String> order(ShardIndex index, int shard) throws IOException {
    List<String> paths = new ArrayList<>();
    try (ShardIndex.Order order = index.order(shard)) {
      for (FileName path = order.next(); path != null; path = order.next()) {
        paths.add(path.toLatin1());
      }
    }
    return paths;
  }

  @Test
  void build_missingDirectories_areMade() throws Exception {
    write("a.tar", new Tar().file("d/e/f", "1").file("d/e-/f", "2").file("g", "").end());

    build(MERGED, "a.tar");

    try (ShardIndex index = index()) {
      assertThat(names(index, "")).containsExactly("d", "g");
      assertThat(names(index, "d")).containsExactly("e", "e-");
      assertThat(names(index, "d/e")).containsExactly("f");
      ShardMember made = member(index, "d/e");
      assertThat(made.mode()).isEqualTo(040755);
      assertThat(made.modificationTime()).isEqualTo(Instant.ofEpochSecond(1_700_000_000, 5));
    }
  }

  @Test
  void build_memberBelowAFile_isLeftOut() throws Exception {
    write(
        "a.tar", new Tar().file("f/x", "1").file("f", "2").file("f/y/z", "3").file("f-", "").end());

    IndexSummary summary = build(MERGED, "a.tar");

    try (ShardIndex index = index()) {
      assertThat(names(index, "")).containsExactly("f", "f-");
      assertThat(index.member(FileName.of("f/x"))).isNull();
      assertThat(summary.warnings()).isEqualTo(2);
    }
  }

  @Test
  void list_skipsWhatIsBelow_whateverTheNames() throws Exception {
    write(
        "a.tar",
        new Tar()
            .file("a/\u0001/x", "")
            .file("a/b", "")
            .file("a\u0001", "")
            .file("a\u0001b/c", "")
            .file("a ", "")
            .file("\u00ff", "")
            .end());

    build(MERGED, "a.tar");

    try (ShardIndex index = index()) {
      assertThat(names(index, "")).containsExactly("a", "a\u0001", "a\u0001b", "a ", "\u00ff");
      assertThat(names(index, "a")).containsExactly("\u0001", "b");
    }
  }

  @Test
  void build_hardLinks_areNamesOfTheLastMemberBeforeThem() throws Exception {
    write(
        "a.tar",
        new Tar()
            .file("f", "1")
            .link("one", "f")
            .file("f", "22")
            .link("two", "./f")
            .link("three", "two")
            .link("four", "three")
            .link("lost", "nowhere")
            .link("early", "late")
            .file("late", "")
            .link("d/up", "../f")
            .directory("dir")
            .link("todir", "dir")
            .link("self", "self")
            .end());
    write("b.tar", new Tar().link("other", "f").file("lost", "found").end());

    IndexSummary summary = build(MERGED, "a.tar", "b.tar");

    try (ShardIndex index = index()) {
      assertThat(member(index, "one").size()).isEqualTo(1);
      assertThat(index.linkCount(member(index, "one"))).isEqualTo(1);
      for (String name : List.of("f", "two", "three", "four", "other")) {
        assertThat(member(index, name)).as(name).isEqualTo(member(index, "f"));
        assertThat(index.linkCount(member(index, name))).as(name).isEqualTo(5);
      }
      assertThat(names(index, ""))
          .containsExactly("dir", "f", "four", "late", "lost", "one", "other", "three", "two");
      assertThat(member(index, "lost").size()).isEqualTo(5);
      assertThat(summary.warnings()).as("lost, early, d/up, todir, self").isEqualTo(5);
      assertThat(order(index, 0)).containsExactly("one", "f", "late");
      assertThat(order(index, 1)).containsExactly("lost");
    }
  }

  @Test
  void build_apart_keepsShardsApart() throws Exception {
    write("a.tar", new Tar().directory(".").file("x", "1").link("y", "x").end());
    write("b.tar", new Tar().file("x", "22").link("y", "x").end());

    build(APART, "a.tar", "b.tar");

    try (ShardIndex index = index()) {
      assertThat(names(index, "")).containsExactly("a", "b");
      assertThat(member(index, "a/y").size()).isEqualTo(1);
      assertThat(member(index, "b/y").size()).isEqualTo(2);
      assertThat(member(index, "a").mode()).isEqualTo(040640);
      assertThat(member(index, "b").mode()).isEqualTo(040755);
    }
  }

  @Test
  void build_noShards_isAnEmptyDirectory() throws Exception {
    build(MERGED);

    try (ShardIndex index = index()) {
      assertThat(names(index, "")).isEmpty();
      assertThat(member(index, "").isDirectory()).isTrue();
    }
  }

  @Test
  void build_unsoundShard_namesItAndLeavesNothing() throws Exception {
    write("a.tar", new Tar().file("x", "1").end());
    write("b.tar", "this is no tar file".getBytes(ISO_8859_1));

    assertThatThrownBy(() -> build(APART, "a.tar", "b.tar"))
        .isInstanceOf(ShardException.class)
        .hasMessageStartingWith("b.tar: not a valid tar file: at offset 0: ");
    try (Stream<Path> left = Files.list(directory)) {
      assertThat(left.map(path -> path.getFileName().toString()))
          .containsExactlyInAnyOrder("a.tar", "b.tar");
    }
  }

  @Test
  void build_missingShard_isTheStoresError() {
    assertThatThrownBy(() -> build(APART, "a.tar")).isInstanceOf(FsException.class);
  }

  @Test
  void open_anyByteDamaged_isNoticedOrMeansTheSame() throws Exception {
    write("a.tar", new Tar().file("x", "1").file("d/y", "2").link("z", "x").end());
    build(MERGED, "a.tar");
    Path file = directory.resolve("index");
    byte[] sound = Files.readAllBytes(file);
    String whole = everything();
    int noticed = 0;
    for (int at = 0; at < sound.length; at++) {
      byte[] damaged = sound.clone();
      damaged[at] ^= 0x10;
      Files.write(file, damaged);
      Throwable thrown = catchThrowable(() -> assertThat(everything()).isEqualTo(whole));
      if (thrown != null) {
        assertThat(thrown).as("byte %d", at).isInstanceOf(IOException.class);
        noticed++;
      }
    }
    assertThat(noticed).isGreaterThan(sound.length * 9 / 10);
    Files.write(file, java.util.Arrays.copyOf(sound, sound.length / 2));
    assertThatThrownBy(this::everything).isInstanceOf(IOException.class);
  }

  /** When it can be built again, and not only when the first name of a block is looked up. */
  @Test
  void open_anyBlockOfManyDamaged_isNoticedAtOnce() throws Exception {
    Tar tar = new Tar();
    for (int i = 0; i < 3000; i++) {
      tar.file("name" + i, "");
    }
    write("a.tar", tar.end());
    build(MERGED, "a.tar");
    Path file = directory.resolve("index");
    byte[] sound = Files.readAllBytes(file);
    assertThat(sound.length).as("of blocks of 8 KiB").isGreaterThan(40_000);
    for (int at = 0; at < sound.length - 4096; at += 4096) {
      byte[] damaged = sound.clone();
      damaged[at] ^= 0x10;
      Files.write(file, damaged);
      assertThatThrownBy(() -> index().close()).as("byte %d", at).isInstanceOf(IOException.class);
    }
  }

  private String everything() throws IOException {
    try (ShardIndex index = index()) {
      return "%s %s %s %s %s %s"
          .formatted(
              index.shards(),
              member(index, "d/y"),
              member(index, "z"),
              index.linkCount(member(index, "x")),
              names(index, ""),
              order(index, 0));
    }
  }

  @Test
  void format_isAsWrittenDown() throws Exception {
    ShardMember sparse =
        new ShardMember(
            0100644,
            1000,
            -1,
            0,
            4096,
            Instant.ofEpochSecond(-1, 5),
            2,
            512,
            1024,
            true,
            ShardMember.NO_TARGET,
            new Extents.Builder().add(16, 32).add(4096, 0).build(4096));
    String value =
        "03000081a4000003e8ffffffff00000000000000000000000000001000"
            + "ffffffffffffffff0000000500000002"
            + "00000000000002000000000000000400"
            + "00000000000000100000000000000020";
    Shard shard = new Shard(7, FileName.of("a.tar"), 9, Instant.ofEpochSecond(3, 4), 5, 6);

    assertThat(hex(IndexFormat.member(sparse))).isEqualTo(value);
    assertThat(IndexFormat.member(HexFormat.of().parseHex(value))).isEqualTo(sparse);
    assertThat(hex(IndexFormat.shardKey(7))).isEqualTo("0100000007");
    assertThat(hex(IndexFormat.shard(shard)))
        .isEqualTo("0000000000000009000000000000000300000004" + "0000000500000006612e746172");
    assertThat(IndexFormat.shard(7, IndexFormat.shard(shard))).isEqualTo(shard);
    assertThat(hex(IndexFormat.memberKey(FileName.of("")))).isEqualTo("02");
    assertThat(hex(IndexFormat.memberKey(FileName.of("d/x")))).isEqualTo("0200640078");
    assertThat(IndexFormat.path(IndexFormat.memberKey(FileName.of("d/x"))))
        .isEqualTo(FileName.of("d/x"));
    assertThat(hex(IndexFormat.orderKey(1, 512, IndexFormat.memberKey(FileName.of("x")))))
        .isEqualTo("03000000010000000000000200" + "020078");
    IndexSummary summary = new IndexSummary(new IndexForm(true, false), 2, 3, 4);
    assertThat(hex(IndexFormat.summary(summary)))
        .isEqualTo("706d667800000001010000000002" + "0000000000000003" + "0000000000000004");
    assertThat(IndexFormat.summary(IndexFormat.summary(summary))).isEqualTo(summary);
  }

  private static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }
}
