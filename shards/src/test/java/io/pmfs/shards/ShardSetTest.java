package io.pmfs.shards;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.tier.CountedBackingStore;
import io.pmfs.tier.DirectMemory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which directories are taken for shards, and which index for theirs. */
final class ShardSetTest {
  @TempDir private Path directory;
  @TempDir private Path state;

  private void write(String... names) throws Exception {
    for (String name : names) {
      Files.write(directory.resolve(name), new Tar().file("x", name).end());
    }
  }

  private @Nullable ShardSet find(boolean asked) throws Exception {
    return ShardSet.ofDirectory(new PlainDirectory(directory), asked, false);
  }

  private ShardSet found() throws Exception {
    ShardSet set = find(false);
    if (set == null) {
      throw new AssertionError("taken for a directory");
    }
    return set;
  }

  @Test
  void ofDirectory_ofNothingButTarFiles_isThose() throws Exception {
    write("b.tar", "a.tar", ".hidden");

    assertThat(found().shards().stream().map(shard -> shard.name().toString()))
        .containsExactly("a.tar", "b.tar");
    assertThat(found().form()).isEqualTo(new IndexForm(false, false));
    assertThat(found().isPacked()).isFalse();
  }

  @Test
  void ofDirectory_withOtherFiles_isThoseOnlyWhenAsked() throws Exception {
    write("a.tar", "README");

    assertThat(find(false)).isNull();
    assertThat(find(true)).isNotNull().extracting(ShardSet::count).isEqualTo(1);
  }

  @Test
  void ofDirectory_withAnythingElse_isLookedAtUntilThatIsFound() throws Exception {
    for (int i = 0; i < 5; i++) {
      write("%d.tar".formatted(i));
    }
    Files.createDirectory(directory.resolve("2-train"));
    PlainDirectory store = new PlainDirectory(directory);

    assertThat(ShardSet.ofDirectory(store, false, false)).isNull();
    assertThat(store.namesListed()).isEqualTo(3);
    assertThat(ShardSet.ofDirectory(store, true, false)).isNotNull();
    assertThat(store.namesListed()).as("all, when asked").isEqualTo(3 + 6);
  }

  @Test
  void ofDirectory_empty_isADirectory() throws Exception {
    assertThat(find(false)).isNull();
    assertThatThrownBy(() -> find(true))
        .isInstanceOf(ShardException.class)
        .hasMessageContaining("--source-form directory");
  }

  @Test
  void ofDirectory_withADirectoryNamedSo_isADirectory() throws Exception {
    write("a.tar");
    Files.createDirectory(directory.resolve("b.tar"));

    assertThat(find(false)).isNull();
  }

  @Test
  void ofDirectory_packed_liesTogether() throws Exception {
    write("s-0.tar", "s-1.tar", "README");
    Files.writeString(directory.resolve("pmfs-pack.json"), "{}");

    assertThat(found().isPacked()).isTrue();
    assertThat(found().form()).isEqualTo(new IndexForm(true, false));
    assertThat(found().count()).isEqualTo(2);
  }

  @Test
  void ofDirectory_packingUnfinished_isRefused() throws Exception {
    write("s-0.tar");
    Files.writeString(directory.resolve("pmfs-pack.partial"), "");

    assertThatThrownBy(() -> find(false))
        .isInstanceOf(ShardException.class)
        .hasMessageContaining("has not finished here; run it again");
  }

  /** As pmfs pack leaves it when it is killed with its very last step to do. */
  @Test
  void ofDirectory_packedWithItsMarkerStillThere_isServed() throws Exception {
    write("s-0.tar");
    Files.writeString(directory.resolve("pmfs-pack.json"), "{}");
    Files.writeString(directory.resolve("pmfs-pack.partial"), "");

    assertThat(found().isPacked()).isTrue();
    assertThat(found().count()).isEqualTo(1);
  }

  @Test
  void ofDirectory_streams_areRefusedWhenAsked() throws Exception {
    write("a.tar", "b.tar.gz");

    assertThat(find(false)).isNull();
    assertThatThrownBy(() -> find(true))
        .hasMessageContaining("b.tar.gz: can only be read from its beginning; unpack it");
    assertThatThrownBy(
            () -> ShardSet.ofFile(new PlainDirectory(directory), FileName.of("b.tar.gz"), false))
        .isInstanceOf(ShardException.class);
  }

  @Test
  void ofDirectory_sameDirectoryTwice_isRefused() throws Exception {
    write("a.tar", "a.tar.zst");

    assertThatThrownBy(() -> find(false))
        .hasMessageContaining("another tar file is also shown as a");
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
            files, found(), List.of(state.resolve(index)), 2, new DirectMemory(), progress -> {})) {
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
    ShardSet set = found();
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
