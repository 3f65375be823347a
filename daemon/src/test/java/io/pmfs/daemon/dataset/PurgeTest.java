package io.pmfs.daemon.dataset;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.io.MoreFiles;
import com.google.common.io.RecursiveDeleteOption;
import io.pmfs.daemon.Wiring;
import io.pmfs.places.DatasetDirectory;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;
import io.pmfs.settings.TestMachine;
import io.pmfs.tier.DirectoryTier;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What a dataset leaves when it was purged. Mounts nothing. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class PurgeTest {
  @TempDir private Path temporary;
  private TestMachine world;
  private Path tier;
  private Path states;

  @BeforeEach
  void makeWorld() throws Exception {
    world = new TestMachine(temporary);
    Files.writeString(world.makeDirectory("src").resolve("a"), "first");
    tier = world.makeDirectory("tier");
    states = world.makeDirectory("states");
  }

  private MountedDataset open() throws Exception {
    Configuration configuration =
        Configuration.resolve(
            new Configuration.Request(
                Map.of(
                    MountOption.TIER, List.of("ssd:" + tier + ":1M"),
                    MountOption.STATE_DIR, List.of(states.toString()),
                    MountOption.BRIDGE, List.of("kernel")),
                null,
                "src",
                world.makeDirectory("mnt").toString()),
            world.surroundings());
    MountSettings settings = configuration.toSettings(world.surroundings());
    SessionSettings session =
        SessionSettings.begin(configuration, settings, world.directory.resolve("log"), false);
    return new Wiring(world.surroundings(), null, 0, line -> {}).open(settings, session);
  }

  private static Path onlyEntry(Path directory) throws Exception {
    try (Stream<Path> entries = Files.list(directory)) {
      return entries.toList().get(0);
    }
  }

  @Test
  void purge_removesCopiesAndState() throws Exception {
    try (MountedDataset dataset = open()) {
      Files.delete(onlyEntry(tier).resolve(DirectoryTier.LOCK));
      dataset.purge();
    }
    assertThat(tier).isEmptyDirectory();
    assertThat(states).isEmptyDirectory();
  }

  @Test
  void purge_ofATierThatAnotherMountUsesNow_removesNothing() throws Exception {
    MountedDataset dataset = open();
    Path copies = onlyEntry(tier);
    MoreFiles.deleteRecursively(copies, RecursiveDeleteOption.ALLOW_INSECURE);
    try (FileChannel another = new DatasetDirectory(copies, DirectoryTier.LOCK).hold()) {
      assertThat(another).isNotNull();
      Path copy = Files.writeString(copies.resolve("copy"), "x");
      dataset.purge();
      dataset.close();
      assertThat(copy).exists();
      assertThat(onlyEntry(states)).as("what shows that not all was purged").exists();
    }
  }

  @Test
  void purge_ofAStateThatAnotherMountUsesNow_removesNothingThere() throws Exception {
    MountedDataset dataset = open();
    Path state = onlyEntry(states);
    Files.move(state, world.directory.resolve("away"));
    try (FileChannel another = new DatasetDirectory(state, "LOCK").hold()) {
      assertThat(another).isNotNull();
      dataset.purge();
      dataset.close();
      assertThat(state.resolve("LOCK")).exists();
    }
  }

  @Test
  void transientCopies_areDroppedAtTheEnd_unlessTheMarkIsGone() throws Exception {
    world.environment.put(TransientCopies.VARIABLE, "1");
    MountedDataset kept = open();
    Files.delete(onlyEntry(states).resolve("transient"));
    kept.close();
    assertThat(onlyEntry(tier)).isNotEmptyDirectory();

    MoreFiles.deleteDirectoryContents(tier, RecursiveDeleteOption.ALLOW_INSECURE);
    MoreFiles.deleteDirectoryContents(states, RecursiveDeleteOption.ALLOW_INSECURE);
    open().close();
    assertThat(tier).isEmptyDirectory();
    assertThat(states).isEmptyDirectory();
  }
}
