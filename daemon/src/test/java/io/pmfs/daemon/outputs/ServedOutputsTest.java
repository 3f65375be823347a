package io.pmfs.daemon.outputs;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.contents.OutputDirectories;
import io.pmfs.daemon.dataset.DatasetSource;
import io.pmfs.daemon.dataset.KernelSession;
import io.pmfs.daemon.dataset.Opened;
import io.pmfs.daemon.process.Readiness;
import io.pmfs.fuse.Bridge;
import io.pmfs.places.SourceIdentity;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;
import io.pmfs.settings.TestMachine;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.WritableFileSystem;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The end of a writable mount, of which neither the kernel nor the source is real. */
final class ServedOutputsTest {
  private static final DrainStatus ONE_WAITS =
      new DrainStatus(0, 0, 1, 0, 0, 0, 0, 0, 0, 0, List.of(), null);

  @TempDir private Path temporary;
  private TestMachine world;
  private Map<MountOption<?>, List<String>> given;
  private int looks;

  /** After so many looks at its status the file system has a change that waits. */
  private int looksBeforeAChange = Integer.MAX_VALUE;

  @BeforeEach
  void makeWorld() {
    world = new TestMachine(temporary);
    given =
        Map.of(
            MountOption.WRITABLE, List.of("true"),
            MountOption.TIER, List.of("ssd:" + world.makeDirectory("tier") + ":50%"),
            MountOption.STATE_DIR, List.of(world.makeDirectory("state").toString()));
    world.makeDirectory("src");
  }

  private DrainStatus status() {
    return ++looks > looksBeforeAChange ? ONE_WAITS : DrainStatus.NONE;
  }

  private WritableFileSystem fileSystem() {
    return (WritableFileSystem)
        Proxy.newProxyInstance(
            WritableFileSystem.class.getClassLoader(),
            new Class<?>[] {WritableFileSystem.class},
            (self, method, arguments) ->
                switch (method.getName()) {
                  case "drainStatus" -> status();
                  case "drain" -> true;
                  case "endSession", "close" -> null;
                  default -> throw new UnsupportedOperationException(method.getName());
                });
  }

  private static Bridge bridge() {
    return (Bridge)
        Proxy.newProxyInstance(
            Bridge.class.getClassLoader(),
            new Class<?>[] {Bridge.class},
            (self, method, arguments) ->
                switch (method.getName()) {
                  case "awaitEnd" -> true;
                  case "listen", "mount", "waiting", "device" -> null;
                  default -> throw new UnsupportedOperationException(method.getName());
                });
  }

  private ServedOutputs open() throws Exception {
    MountSettings settings = world.settings(given);
    Opened opened = new Opened();
    OutputDirectories directories =
        OutputDirectories.open(settings, "run42", world.surroundings(), false);
    directories.begin(
        SessionSettings.begin(
                world.configuration(given, null), settings, temporary.resolve("log"), false)
            .of(new SourceIdentity(SourceIdentity.Form.DIRECTORY, "inode 1", null)));
    return new ServedOutputs(
        KernelSession.open(settings, bridge(), "", false, inode -> null, opened),
        DatasetSource.open(settings.source()),
        directories,
        null,
        fileSystem(),
        new Readiness(Duration.ofSeconds(30)),
        opened);
  }

  /** The directories must be marked as long as a change may be missing at the source. */
  private boolean isMarkedAfterTheEnd() throws Exception {
    ServedOutputs served = open();
    served.start();
    served.close();
    try (OutputDirectories after =
        OutputDirectories.open(world.settings(given), "run42", world.surroundings(), false)) {
      return after.isUnsaved();
    }
  }

  @Test
  void close_sourceHasEverything_removesTheMarks() throws Exception {
    assertThat(isMarkedAfterTheEnd()).isFalse();
  }

  /** Other nodes may change something while this one still answers them. */
  @Test
  void close_changeAfterTheChangesWereAwaited_keepsTheMarks() throws Exception {
    looksBeforeAChange = 2;
    assertThat(isMarkedAfterTheEnd()).isTrue();
    assertThat(looks).isGreaterThan(2);
  }
}
