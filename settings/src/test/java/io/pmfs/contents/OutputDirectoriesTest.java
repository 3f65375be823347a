package io.pmfs.contents;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.places.SourceIdentity;
import io.pmfs.places.TierPlace;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.SessionSettings;
import io.pmfs.settings.TestMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class OutputDirectoriesTest {
  private static final String NAME = "run42-0123456789abcdef";

  @TempDir private Path temporary;
  private TestMachine world;
  private Map<MountOption<?>, List<String>> given;

  @BeforeEach
  void makeWorld() {
    world = new TestMachine(temporary);
    given =
        Map.of(
            MountOption.WRITABLE, List.of("true"),
            MountOption.TIER, List.of("ssd:" + world.makeDirectory("tier") + ":50%"),
            MountOption.STATE_DIR, List.of(world.makeDirectory("state").toString()));
  }

  private OutputDirectories open() throws Exception {
    return open(given);
  }

  private OutputDirectories open(Map<MountOption<?>, List<String>> options) throws Exception {
    return OutputDirectories.open(world.settings(options), NAME, world.surroundings(), false);
  }

  private void begin(OutputDirectories directories) throws Exception {
    directories.begin(
        SessionSettings.begin(
                world.configuration(given, null),
                world.settings(given),
                temporary.resolve("log"),
                false)
            .of(new SourceIdentity(SourceIdentity.Form.DIRECTORY, "inode 1", null)));
    // RocksDB makes it.
    Files.writeString(directories.state().resolve("LOCK"), "");
  }

  private CacheContents contents() throws Exception {
    return CacheContents.of(List.of(world.configuration(given, null)), world.surroundings(), null);
  }

  private CacheContents.Dataset dataset() throws Exception {
    return contents().datasets().stream()
        .filter(one -> one.name().equals(NAME))
        .findFirst()
        .orElseThrow();
  }

  @Test
  void open_whileAnotherMountIsThere_isRefused() throws Exception {
    try (OutputDirectories first = open()) {
      assertThat(first.places()).hasSize(1);
      assertThatThrownBy(this::open)
          .isInstanceOfSatisfying(
              MountFailure.class, e -> assertThat(e.exitStatus()).isEqualTo(ExitStatus.IN_USE));
    }
    open().close();
  }

  @Test
  void purge_ofWhatIsNotAtTheSource_isRefusedUntilItIs() throws Exception {
    try (OutputDirectories directories = open()) {
      begin(directories);
      assertThat(directories.isUnsaved()).isTrue();
    }
    Path file =
        Files.writeString(world.directory.resolve("tier").resolve(NAME).resolve("data"), "x");

    assertThat(dataset().isUnsaved()).isTrue();
    assertThat(dataset().unsaved())
        .contains("pmfs drain --state " + world.directory.resolve("state"));
    assertThatThrownBy(() -> contents().purge(dataset()))
        .isInstanceOfSatisfying(
            MountFailure.class, e -> assertThat(e.exitStatus()).isEqualTo(ExitStatus.PARTLY));
    assertThatThrownBy(() -> tier().purge(NAME)).hasMessageContaining("not at the source");
    assertThat(file).exists();

    try (OutputDirectories directories = open()) {
      directories.clear();
    }
    contents().purge(dataset());
    assertThat(file).doesNotExist();
    assertThat(world.directory.resolve("state").resolve(NAME)).doesNotExist();
  }

  private TierPlace tier() throws Exception {
    return world.settings(given).copies().tiers().get(0).place();
  }

  @Test
  void tiers_ofAnEarlierMount_areThereButTakeNoNewFiles() throws Exception {
    try (OutputDirectories directories = open()) {
      begin(directories);
    }
    Map<MountOption<?>, List<String>> other =
        Map.of(
            MountOption.WRITABLE, List.of("true"),
            MountOption.TIER, List.of("ssd:" + world.makeDirectory("other")),
            MountOption.STATE_DIR, given.get(MountOption.STATE_DIR));

    try (OutputDirectories directories = open(other)) {
      assertThat(directories.places())
          .extracting(OutputDirectories.Place::directory)
          .containsExactly(
              world.directory.resolve("other").resolve(NAME),
              world.directory.resolve("tier").resolve(NAME));
      assertThat(directories.places().get(0).capacityBytes()).isPositive();
      assertThat(directories.places().get(1).capacityBytes()).isZero();
      directories.clear();
    }
    try (OutputDirectories directories = open(other)) {
      assertThat(directories.places()).hasSize(1);
    }
  }
}
