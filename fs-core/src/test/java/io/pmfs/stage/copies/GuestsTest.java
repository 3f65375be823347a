package io.pmfs.stage.copies;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.Await;
import io.pmfs.stage.Pace;
import io.pmfs.stage.Stage;
import io.pmfs.stage.Staging;
import io.pmfs.stage.formats.Bundling;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

final class GuestsTest {
  private static final int SIZE = 8 << 10;
  private static final int TIER_FILES = 32;

  @TempDir Path directory;

  /**
   * This node's files are those with names that start with "own", unless a test sets another rule.
   */
  private static final class Named implements Share {
    private final RemoteCopies remoteCopies;
    private volatile Predicate<String> own = name -> name.startsWith("own");

    Named(RemoteCopies remoteCopies) {
      this.remoteCopies = remoteCopies;
    }

    @Override
    public boolean isOwn(Inode inode) {
      return own.test(inode.name().toString());
    }

    @Override
    public RemoteCopies remoteCopies() {
      return remoteCopies;
    }
  }

  private static List<Inode> files(Stage stage, String prefix, int count) throws Exception {
    for (int i = 0; i < count; i++) {
      stage.store.file("%s%02d".formatted(prefix, i), i, SIZE);
    }
    stage.importAll();
    List<Inode> files = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      files.add(stage.inode("%s%02d".formatted(prefix, i)));
    }
    return files;
  }

  private static void readAll(Stage stage, List<Inode> files) throws Exception {
    for (int i = 0; i < files.size(); i++) {
      assertThat(stage.read(files.get(i))).isEqualTo(Stage.expected(i, files.get(i)));
      Await.until("staging is idle", () -> stage.stager.status().idle());
    }
  }

  private static long copied(Stage stage, List<Inode> files) {
    return files.stream().filter(stage.copies::has).count();
  }

  @ParameterizedTest
  @EnumSource(RemoteCopies.class)
  void read_withAmpleRoom_copiesGuestsUnlessNever(RemoteCopies copies) throws Exception {
    try (Stage stage = new Stage(directory, 1 << 20).with(new Named(copies))) {
      List<Inode> guests = files(stage, "guest", 10);
      readAll(stage, guests);
      assertThat(copied(stage, guests)).isEqualTo(copies == RemoteCopies.NEVER ? 0 : 10);
      assertThat(stage.stager.status().skippedNoRoom()).isZero();
    }
  }

  @Test
  void read_ofOwnFiles_displacesGuestsUntilAllHaveCopies() throws Exception {
    try (Stage stage = new Stage(directory, TIER_FILES * SIZE).with(new Named(RemoteCopies.AUTO))) {
      List<Inode> guests = files(stage, "guest", TIER_FILES + 8);
      readAll(stage, guests);
      // A sixteenth is left for the node's own files.
      assertThat(copied(stage, guests)).isEqualTo(TIER_FILES - TIER_FILES / 16);

      List<Inode> own = files(stage, "own", TIER_FILES - 2);
      readAll(stage, own);

      assertThat(copied(stage, own)).isEqualTo(TIER_FILES - 2);
      assertThat(copied(stage, guests)).isLessThanOrEqualTo(2);
      long evicted = stage.stager.status().evicted();

      readAll(stage, guests);
      readAll(stage, own);

      assertThat(copied(stage, own)).isEqualTo(TIER_FILES - 2);
      assertThat(stage.stager.status().evicted()).as("nothing goes to and fro").isEqualTo(evicted);
    }
  }

  @Test
  void read_whenGuestsAreKept_displacesNone() throws Exception {
    try (Stage stage = new Stage(directory, TIER_FILES * SIZE).with(new Named(RemoteCopies.KEEP))) {
      List<Inode> guests = files(stage, "guest", TIER_FILES);
      readAll(stage, guests);
      List<Inode> own = files(stage, "own", 4);
      readAll(stage, own);
      assertThat(copied(stage, guests)).isEqualTo(TIER_FILES);
      assertThat(copied(stage, own)).isZero();
    }
  }

  @Test
  void stage_ofOwnFiles_displacesGuestsThatAreNotPinned() throws Exception {
    try (Stage stage = new Stage(directory, TIER_FILES * SIZE).with(new Named(RemoteCopies.AUTO))) {
      List<Inode> guests = files(stage, "guest", TIER_FILES);
      Staging pinning =
          stage.stager.staging(new Placement(null, true), Pace.UNLIMITED, bytes -> {});
      for (Inode guest : guests) {
        Staging staging = guest.name().toString().endsWith("0") ? pinning : staging(stage);
        assertThat(staging.stage(guest).isThere()).isTrue();
      }

      List<Inode> own = files(stage, "own", TIER_FILES - 4);
      for (Inode file : own) {
        assertThat(staging(stage).stage(file).result()).isEqualTo(Staging.Outcome.Result.STAGED);
      }

      assertThat(copied(stage, own)).isEqualTo(TIER_FILES - 4);
      assertThat(guests)
          .filteredOn(guest -> guest.name().toString().endsWith("0"))
          .allMatch(stage.copies::has);
    }
  }

  private static Staging staging(Stage stage) {
    return stage.stager.staging(Placement.ANYWHERE, Pace.UNLIMITED, bytes -> {});
  }

  @Test
  void dropGuests_afterALonelyTime_dropsWhatReadersMadeAndOthersHaveByNow() throws Exception {
    Named share = new Named(RemoteCopies.NEVER);
    share.own = name -> true;
    try (Stage stage = new Stage(directory, 1 << 20).with(Bundling.ALL).with(share)) {
      List<Inode> own = files(stage, "own", 3);
      List<Inode> lonely = files(stage, "lonely", 6);
      List<Inode> staged = files(stage, "staged", 2);
      readAll(stage, own);
      readAll(stage, lonely);
      for (Inode file : staged) {
        assertThat(staging(stage).stage(file).isThere()).isTrue();
      }
      // Read first, then requested by a task.
      assertThat(staging(stage).stage(lonely.get(5)).isThere()).isTrue();
      assertThat(stage.stager.dropGuests(inode -> true)).isZero();
      assertThat(copied(stage, lonely)).as("alone").isEqualTo(6);

      share.own = name -> name.startsWith("own");
      stage.stager.shareChanged();
      long left = stage.stager.dropGuests(inode -> inode.number() != lonely.get(4).number());

      assertThat(left).isOne();
      assertThat(lonely)
          .filteredOn(stage.copies::has)
          .containsExactly(lonely.get(4), lonely.get(5));
      assertThat(copied(stage, own)).isEqualTo(3);
      assertThat(copied(stage, staged)).isEqualTo(2);
      assertThat(stage.stager.dropGuests(inode -> true)).isZero();
      assertThat(copied(stage, lonely)).isOne();
      readAll(stage, lonely);
      assertThat(copied(stage, lonely)).as("read again").isOne();
    }
  }

  @Test
  void dropGuests_thatAreCopiedHere_dropsNone() throws Exception {
    Named share = new Named(RemoteCopies.AUTO);
    share.own = name -> true;
    try (Stage stage = new Stage(directory, 1 << 20).with(share)) {
      List<Inode> lonely = files(stage, "lonely", 3);
      readAll(stage, lonely);
      share.own = name -> false;
      stage.stager.shareChanged();
      assertThat(stage.stager.dropGuests(inode -> true)).isZero();
      assertThat(copied(stage, lonely)).isEqualTo(3);
    }
  }

  @Test
  void read_ofGuests_isNotInBundles() throws Exception {
    try (Stage stage =
        new Stage(directory, 1 << 20).with(Bundling.ALL).with(new Named(RemoteCopies.AUTO))) {
      Inode own = files(stage, "own", 1).get(0);
      Inode guest = files(stage, "guest", 1).get(0);
      readAll(stage, List.of(own));
      readAll(stage, List.of(guest));
      assertThat(record(stage, own).extent()).isNotNull();
      assertThat(record(stage, guest).extent()).isNull();
    }
  }

  private static CopyRecord record(Stage stage, Inode inode) {
    return stage.namespace.copies(inode.number()).get(0);
  }

  @Test
  void stage_afterTheShareChanged_displacesWhatWasOwnAndInBundles() throws Exception {
    Named share = new Named(RemoteCopies.AUTO);
    share.own = name -> true;
    long capacity = 40L << 20;
    try (Stage stage = new Stage(directory, capacity).with(Bundling.ALL).with(share)) {
      int size = 200 << 10;
      List<Inode> before = new ArrayList<>();
      for (int i = 0; i < 190; i++) {
        stage.store.file("before%03d".formatted(i), i, size);
      }
      for (int i = 0; i < 100; i++) {
        stage.store.file("own%03d".formatted(i), 1000 + i, size);
      }
      stage.importAll();
      for (int i = 0; i < 190; i++) {
        before.add(stage.inode("before%03d".formatted(i)));
        assertThat(staging(stage).stage(before.get(i)).isThere()).isTrue();
      }
      share.own = name -> name.startsWith("own");
      stage.stager.shareChanged();

      for (int i = 0; i < 100; i++) {
        Inode own = stage.inode("own%03d".formatted(i));
        assertThat(staging(stage).stage(own).isThere()).as("own%03d", i).isTrue();
        assertThat(stage.read(own)).isEqualTo(Stage.expected(1000 + i, own));
      }
      for (int i = 0; i < 190; i++) {
        assertThat(stage.read(before.get(i))).isEqualTo(Stage.expected(i, before.get(i)));
      }
    }
  }
}
