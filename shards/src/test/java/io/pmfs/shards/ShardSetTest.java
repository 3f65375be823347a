package io.pmfs.shards;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.FileName;
import io.pmfs.source.CountedBackingStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which files of a directory are shards, and which index belongs to them. */
final class ShardSetTest {
  @TempDir private Path directory;
  @TempDir private Path state;

  private void write(String... names) throws Exception {
    for (String name : names) {
      Files.write(directory.resolve(name), new Tar().file("x", name).end());
    }
  }

  private ShardSet find() throws Exception {
    return ShardSet.ofDirectory(new PlainDirectory(directory), false);
  }

  private int alone() throws Exception {
    return ShardSet.countIfAlone(new PlainDirectory(directory));
  }

  @Test
  void ofDirectory_ofNothingButTarFiles_isThose() throws Exception {
    write("b.tar", "a.tar", ".hidden");

    assertThat(find().shards().stream().map(shard -> shard.name().toString()))
        .containsExactly("a.tar", "b.tar");
    assertThat(find().form()).isEqualTo(new IndexForm(false, false));
    assertThat(find().isPacked()).isFalse();
    assertThat(alone()).isEqualTo(2);
  }

  @Test
  void ofDirectory_withOtherFiles_isTheTarFilesAmongThem() throws Exception {
    write("a.tar", "README");
    Files.createDirectory(directory.resolve("b.tar"));

    assertThat(find().count()).isEqualTo(1);
    assertThat(alone()).isZero();
  }

  @Test
  void countIfAlone_ofAnythingElse_stopsWhereThatIsFound() throws Exception {
    for (int i = 0; i < 5; i++) {
      write("%d.tar".formatted(i));
    }
    Files.createDirectory(directory.resolve("2-train"));
    PlainDirectory store = new PlainDirectory(directory);

    assertThat(ShardSet.countIfAlone(store)).isZero();
    assertThat(store.namesListed()).isEqualTo(3);
  }

  @Test
  void ofDirectory_withoutTarFiles_isRefused() throws Exception {
    assertThat(alone()).isZero();
    assertThatThrownBy(this::find)
        .isInstanceOf(ShardException.class)
        .hasMessageContaining("--source-form directory");

    Files.createDirectory(directory.resolve("a.tar"));

    assertThatThrownBy(this::find).hasMessageContaining("there is no tar file here");
  }

  @Test
  void ofDirectory_packed_liesTogether() throws Exception {
    write("s-0.tar", "s-1.tar", "README");
    Files.writeString(directory.resolve("pmfs-pack.json"), "{}");

    assertThat(ShardSet.isPacked(new PlainDirectory(directory))).isTrue();
    assertThat(find().isPacked()).isTrue();
    assertThat(find().form()).isEqualTo(new IndexForm(true, false));
    assertThat(find().count()).isEqualTo(2);
  }

  @Test
  void ofDirectory_packingUnfinished_isRefused() throws Exception {
    write("s-0.tar");
    Files.writeString(directory.resolve("pmfs-pack.partial"), "");

    assertThatThrownBy(() -> ShardSet.isPacked(new PlainDirectory(directory)))
        .isInstanceOf(ShardException.class)
        .hasMessageContaining("has not finished here; run it again");
  }

  /** As left by a pmfs pack that was killed before its last step. */
  @Test
  void ofDirectory_packedWithItsMarkerStillThere_isServed() throws Exception {
    write("s-0.tar");
    Files.writeString(directory.resolve("pmfs-pack.json"), "{}");
    Files.writeString(directory.resolve("pmfs-pack.partial"), "");

    assertThat(find().isPacked()).isTrue();
    assertThat(find().count()).isEqualTo(1);
  }

  @Test
  void ofDirectory_streams_areRefused() throws Exception {
    write("a.tar", "b.tar.gz");

    assertThat(alone()).isZero();
    assertThatThrownBy(this::find)
        .hasMessageContaining("b.tar.gz: can only be read from its beginning; unpack it");
    assertThatThrownBy(
            () -> ShardSet.ofFile(new PlainDirectory(directory), FileName.of("b.tar.gz"), false))
        .isInstanceOf(ShardException.class);
  }

  @Test
  void ofDirectory_sameDirectoryTwice_isRefused() throws Exception {
    write("a.tar", "a.tar.zst");

    assertThatThrownBy(this::find).hasMessageContaining("another tar file is also shown as a");
  }

  @Test
  void open_again_takesTheIndexThatIsThere() throws Exception {
    write("a.tar", "b.tar");
    assertThat(opens()).as("to build, and to read").isEqualTo(3);
    assertThat(opens()).as("to read").isEqualTo(1);

    Files.write(state.resolve("kept"), new byte[] {1, 2, 3});
    assertThat(opens()).as("damaged").isEqualTo(3);

    Files.write(directory.resolve("b.tar"), new Tar().file("y", "changed").end());
    assertThat(opens()).as("changed").isEqualTo(2);
    assertThat(opens()).isEqualTo(1);

    write("c.tar");
    assertThat(opens()).as("one more").isEqualTo(2);
  }

  @Test
  void open_shardsChanged_isWhatAllIndexedAnewWouldBe() throws Exception {
    Tar all =
        new Tar()
            .directory("./")
            .file("made/x", "1")
            .file("made/x", "the later")
            .link("made/hard", "made/x")
            .symlink("made/soft", "x");
    Files.write(directory.resolve("kept.tar"), all.end());
    write("goes.tar", "changes.tar");
    listing("kept");
    Files.delete(directory.resolve("goes.tar"));
    Files.write(directory.resolve("changes.tar"), new Tar().file("y", "").end());
    write("added.tar", "keptaside.tar");

    String taken = listing("kept");

    assertThat(taken).isEqualTo(listing("fresh")).contains("made/hard");
    write("again.tar");
    assertThat(listing("kept")).as("taken over twice").isEqualTo(listing("fresh again"));
    Files.write(directory.resolve("keptaside.tar"), new Tar().file("other", "").end());
    assertThat(listing("kept"))
        .as("with the directory before it")
        .isEqualTo(listing("fresh once more"));
  }

  private String listing(String index) throws Exception {
    PlainDirectory files = new PlainDirectory(directory);
    try (ShardStore store =
        ShardSource.open(
            files, find(), List.of(state.resolve(index)), 2, new DirectMemory(), progress -> {})) {
      return String.valueOf(Listing.ofStore(store));
    }
  }

  @Test
  void open_withWarningsBefore_readsAllAgain() throws Exception {
    write("a.tar");
    Files.write(directory.resolve("b.tar"), new Tar().link("lost", "nowhere").end());
    opens();
    Files.write(directory.resolve("b.tar"), new Tar().file("y", "changed").end());

    assertThat(opens()).as("to build, and to read").isEqualTo(3);
    write("c.tar");
    assertThat(opens()).as("to build, and to read").isEqualTo(2);
  }

  private long opens() throws Exception {
    CountedBackingStore files = new CountedBackingStore(new PlainDirectory(directory));
    ShardSet set = find();
    try (ShardStore store =
        ShardSource.open(
            files,
            set,
            List.of(state.resolve("absent"), state.resolve("kept")),
            2,
            new DirectMemory(),
            progress -> {})) {
      assertThat(Listing.content(store, FileName.of("a/x"))).isEqualTo("a.tar".getBytes(UTF_8));
    }
    return files.operations().opens();
  }
}
