package io.pmfs.daemon.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.settings.TestMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ExternalUnmountTest {
  @TempDir private Path directory;
  private TestMachine world;
  private Path mountpoint;

  @BeforeEach
  void makeFailingFusermount() throws Exception {
    world = new TestMachine(directory);
    world.uid = 4711;
    mountpoint = world.makeDirectory("mnt");
    world.fusermount("fusermount3");
    Files.writeString(
        directory.resolve("bin/fusermount3"), "#!/bin/sh\necho 'f: entry not found' >&2\nexit 1\n");
  }

  @Test
  void run_failsAndStillMounted_isAFailure() throws Exception {
    MountTable.Mount mount = mounted();

    assertThatThrownBy(() -> ExternalUnmount.run(mount, true, world.surroundings()))
        .hasMessageContaining("not unmounted: f: entry not found");
  }

  private MountTable.Mount mounted() throws MountFailure {
    world.mountinfo(TestMachine.line(mountpoint, "fuse.pmfs", "/s"));
    return Objects.requireNonNull(world.surroundings().mounts().at(mountpoint));
  }

  /** The guard of a dead mount may unmount at the same time. */
  @Test
  void run_failsBecauseAnotherWasFaster_isFine() throws Exception {
    MountTable.Mount mount = mounted();
    Files.writeString(
        directory.resolve("bin/fusermount3"),
        "#!/bin/sh\n: >%s\nexit 1\n".formatted(world.root.resolve("proc/self/mountinfo")));
    assertThatCode(() -> ExternalUnmount.run(mount, true, world.surroundings()))
        .doesNotThrowAnyException();
  }

  @Test
  void run_anotherMountOnThePath_isLeftAlone() throws Exception {
    MountTable.Mount gone = mounted();
    world.mountinfo(TestMachine.line(mountpoint, "fuse.pmfs", "/s").replace("0:30", "0:31"));
    Path called = directory.resolve("called");
    Files.writeString(directory.resolve("bin/fusermount3"), "#!/bin/sh\n: >%s\n".formatted(called));

    ExternalUnmount.run(gone, true, world.surroundings());

    assertThat(called).doesNotExist();
  }
}
