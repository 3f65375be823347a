package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ExternalUnmountTest {
  @TempDir private Path directory;
  private TestWorld world;
  private Path mountpoint;

  @BeforeEach
  void makeFailingFusermount() throws Exception {
    world = new TestWorld(directory);
    world.uid = 4711;
    mountpoint = world.makeDirectory("mnt");
    world.fusermount("fusermount3");
    Files.writeString(
        directory.resolve("bin/fusermount3"), "#!/bin/sh\necho 'f: entry not found' >&2\nexit 1\n");
  }

  @Test
  void run_failsAndStillMounted_isAFailure() {
    world.mountinfo(TestWorld.line(mountpoint, "fuse.pmfs", "/s"));

    assertThatThrownBy(() -> ExternalUnmount.run(mountpoint, true, world.surroundings()))
        .hasMessageContaining("not unmounted: f: entry not found");
  }

  /** The guard of a dead mount may unmount at the same time. */
  @Test
  void run_failsBecauseAnotherWasFaster_isFine() {
    assertThatCode(() -> ExternalUnmount.run(mountpoint, true, world.surroundings()))
        .doesNotThrowAnyException();
  }
}
