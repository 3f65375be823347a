package io.pmfs.places;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.machine.MountFailure;
import io.pmfs.settings.TestMachine;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class DefaultTierTest {
  @TempDir private Path temporary;
  private TestMachine world;

  @BeforeEach
  void makeWorld() {
    world = new TestMachine(temporary);
    world.environment.put("XDG_CACHE_HOME", world.makeDirectory("xdg").toString());
    world.environment.put("HOME", world.makeDirectory("home").toString());
    world.environment.put("TMPDIR", world.makeDirectory("tmp").toString());
  }

  @Test
  void choose_allLocal_takesTheFirst() throws Exception {
    assertThat(choose().tier().path()).isEqualTo(world.directory.resolve("cache"));
    assertThat(choose().place()).isEqualTo("$PMFS_CACHE_DIR");
    assertThat(choose().tier().kind()).isEqualTo(TierKind.SSD);
  }

  @Test
  void choose_withoutCacheDirectory_takesXdg() throws Exception {
    world.environment.remove("PMFS_CACHE_DIR");

    assertThat(choose().tier().path()).isEqualTo(world.directory.resolve("xdg/pmfs"));
  }

  @Test
  void choose_withoutXdg_takesHome() throws Exception {
    world.environment.remove("PMFS_CACHE_DIR");
    world.environment.remove("XDG_CACHE_HOME");

    assertThat(choose().tier().path()).isEqualTo(world.directory.resolve("home/.cache/pmfs"));
  }

  @Test
  void choose_homeOnNfsAndXdgInMemory_takesTmpdir() throws Exception {
    world.environment.remove("PMFS_CACHE_DIR");
    world.mountinfo(
        TestMachine.line(world.directory.resolve("home"), "nfs4", "srv:/home"),
        TestMachine.line(world.directory.resolve("xdg"), "tmpfs", "tmpfs"));

    assertThat(choose().tier().path()).isEqualTo(world.directory.resolve("tmp/pmfs-ada"));
    assertThat(choose().place()).isEqualTo("$TMPDIR/pmfs-ada");
  }

  @Test
  void choose_relativeVariable_isIgnored() throws Exception {
    world.environment.put("PMFS_CACHE_DIR", "relative");

    assertThat(choose().place()).isEqualTo("$XDG_CACHE_HOME/pmfs");
  }

  @Test
  void choose_fileInTheWay_takesTheNext() throws Exception {
    java.nio.file.Files.writeString(world.directory.resolve("cache"), "a file");

    assertThat(choose().place()).isEqualTo("$XDG_CACHE_HOME/pmfs");
  }

  @Test
  void choose_onlyLastPlaceIsLeft_takesIt() throws Exception {
    world.environment.clear();
    world.mountinfo(TestMachine.line(Path.of("/var/tmp"), "xfs", "/dev/sdb"));

    assertThat(choose().tier().path()).isEqualTo(Path.of("/var/tmp/pmfs-ada"));
  }

  @Test
  void choose_nothingLocal_failsNamingEachAndTheRemedy() {
    world.mountinfo(
        TestMachine.line(world.directory, "lustre", "mds:/x"),
        TestMachine.line(Path.of("/var/tmp"), "tmpfs", "tmpfs"));

    assertThatThrownBy(this::choose)
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("is on lustre")
        .hasMessageContaining("/var/tmp/pmfs-ada is on tmpfs")
        .hasMessageContaining("--tier");
  }

  private DefaultTier.Choice choose() throws MountFailure {
    return DefaultTier.choose(world.surroundings(), world.surroundings().mounts());
  }
}
