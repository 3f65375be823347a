package io.pmfs.daemon;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.daemon.dataset.MountedDataset;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.daemon.report.TierReport;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.machine.MountFailure;
import io.pmfs.metadata.FileName;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierKind;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;
import io.pmfs.settings.TestMachine;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskRequest;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A new kind of tier needs only a class, here {@link MemoryPlace}, and an entry in the list of
 * kinds; pmfs can then parse, check, open, fill and empty it. Mounts nothing.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class ThirdTierKindTest {
  @TempDir private Path temporary;
  private TestMachine world;
  private Surroundings surroundings;

  @BeforeEach
  void makeWorld() throws Exception {
    world = new TestMachine(temporary);
    Path source = world.makeDirectory("src");
    Files.writeString(source.resolve("a"), "first", UTF_8);
    Files.writeString(source.resolve("b"), "second", UTF_8);
    List<TierKind> kinds = new ArrayList<>(TierKind.ALL);
    kinds.add(new TierKind("mem", MemoryPlace::new));
    surroundings =
        new Surroundings(
            Map.copyOf(world.environment), world.directory, world.uid, "ada", world.root, kinds);
  }

  private Configuration configuration(String tier) throws MountFailure {
    return Configuration.resolve(
        new Configuration.Request(
            Map.of(MountOption.TIER, List.of(tier), MountOption.BRIDGE, List.of("kernel")),
            null,
            "src",
            world.makeDirectory("mnt").toString()),
        surroundings);
  }

  private void check(MountSettings settings) throws MountFailure {
    new MountChecks(settings, surroundings, surroundings.mounts(), null).run();
  }

  @Test
  void kind_notInTheList_isNamedWithThoseThatAre() {
    assertThatThrownBy(() -> configuration("hdd:/a").toSettings(surroundings))
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("no tier kind 'hdd'; the kinds are pm, ssd and mem");
  }

  @Test
  void check_placeThatCannotBeUsed_isUsage() throws Exception {
    MountSettings settings = configuration("mem:/ram").toSettings(surroundings);

    assertThatThrownBy(() -> check(settings))
        .hasMessage("/ram: tier mem: has no size; give it one");
  }

  @Test
  void open_tierOfTheKind_takesCopies() throws Exception {
    Configuration configuration = configuration("mem:/ram:1M");
    MountSettings settings = configuration.toSettings(surroundings);
    check(settings);
    SessionSettings session =
        SessionSettings.begin(configuration, settings, world.directory.resolve("log"), false);

    try (MountedDataset dataset =
        new Wiring(surroundings, null, 0, line -> {}).open(settings, session)) {
      stageAll(dataset.tasks());

      TierReport tier = dataset.status().dataset().tiers().get(0);
      assertThat(tier.name()).isEqualTo("mem:/ram");
      assertThat(tier.kind()).isEqualTo("mem");
      assertThat(tier.state()).isEqualTo("on");
      assertThat(tier.copies()).isEqualTo(2);
      assertThat(tier.contentBytes()).isEqualTo("first".length() + "second".length());
      dataset.purge();
    }
    assertThat(settings.metadata().stateDirectory()).isEmptyDirectory();
  }

  private static void stageAll(KeptTasks tasks) {
    TaskReport report =
        tasks.start(
            new TaskRequest.Stage(
                TaskPaths.of(List.of(FileName.of(""))),
                new TaskRequest.Limits(0, 0, 0),
                null,
                false,
                false,
                false));
    while (report != null && report.isRunning()) {
      LockSupport.parkNanos(1_000_000);
      report = tasks.latest();
    }
    assertThat(report).isNotNull().extracting(TaskReport::complete).isEqualTo(true);
  }
}
