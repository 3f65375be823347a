package io.pmfs.cli.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.metadata.FileName;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.mounts.Registration;
import io.pmfs.settings.TestMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class TaskTargetTest {
  @TempDir private Path temporary;
  private TestMachine world;
  private final List<Registration> registrations = new ArrayList<>();

  @SuppressWarnings("NullAway.Init")
  TaskTargetTest() {}

  @BeforeEach
  void mount() throws Exception {
    world = new TestMachine(temporary);
    serve("mnt", "src");
  }

  @AfterEach
  void unmount() {
    registrations.forEach(Registration::close);
  }

  private void serve(String mountpoint, String source) throws Exception {
    Path at = world.makeDirectory(mountpoint);
    Registration registration = Objects.requireNonNull(world.registry().register(at));
    registrations.add(registration);
    registration.publish(
        DaemonRecord.of(
            at.toString(), world.makeDirectory(source).toString(), 1, at + ".sock", "/log"));
  }

  private TaskTarget find(String... texts) throws MountFailure {
    return TaskTarget.find(
        List.of(texts), KnownMounts.open(world.surroundings()), world.surroundings());
  }

  @ParameterizedTest
  @CsvSource({
    "mnt, ''",
    "mnt/, ''",
    "./mnt/a/, a",
    "mnt/a/../b//c, b/c",
    "mnt/../mnt/x, x",
    "src, ''",
    "src/a/b, a/b"
  })
  void find_relativePath_isMapped(String text, String path) throws Exception {
    assertThat(find(text).paths()).containsExactly(FileName.of(path));
    assertThat(find(world.directory + "/" + text).paths()).containsExactly(FileName.of(path));
  }

  @ParameterizedTest
  @CsvSource({"., ''", "a/b, a/b", "./d/, d", "mnt/100%, 100%", "src/a, a", "x\udcff, x\u00ff"})
  void in_aKnownMount_isRelativeToItsRoot(String text, String path) throws Exception {
    DaemonRecord mount = find("mnt").dataset().mount();
    assertThat(TaskTarget.in(mount, text, world.surroundings())).isEqualTo(FileName.ofLatin1(path));
  }

  @Test
  void in_aKnownMount_doesNotLeadOutside() throws Exception {
    DaemonRecord mount = find("mnt").dataset().mount();
    assertThatThrownBy(() -> TaskTarget.in(mount, "../a", world.surroundings()))
        .hasMessageContaining("not below");
    assertThatThrownBy(() -> TaskTarget.in(mount, "/tmp", world.surroundings()))
        .hasMessageContaining("not below");
  }

  @ParameterizedTest
  @CsvSource({".,''", "./d/,d", "d/f,d/f", "/d/f,d/f", "x\udcff,x\u00ff"})
  void inRoot_isAPathAsTheMountHasIt(String given, String inside) {
    assertThat(TaskTarget.inRoot(given)).isEqualTo(FileName.ofLatin1(inside));
  }

  @Test
  void find_throughASymbolicLink_isMapped() throws Exception {
    Files.createSymbolicLink(world.directory.resolve("link"), world.directory.resolve("mnt"));

    assertThat(find("link/a").paths()).containsExactly(FileName.of("a"));
  }

  @Test
  void find_bytesThatAreNoUtf8_stay() throws Exception {
    assertThat(find("mnt/x\udcff\udc80").paths())
        .containsExactly(FileName.ofLatin1("x\u00ff\u0080"));
  }

  @Test
  void find_severalPathsOfOneMount_areInOrder() throws Exception {
    assertThat(find("mnt/b", "src/a", "mnt/b").paths())
        .containsExactly(FileName.of("b"), FileName.of("a"), FileName.of("b"));
  }

  @Test
  void find_pathsOfTwoMounts_isWrongUsage() throws Exception {
    serve("mnt2", "src2");

    assertThatThrownBy(() -> find("mnt/a", "src2/b"))
        .isInstanceOfSatisfying(
            MountFailure.class, e -> assertThat(e.exitStatus()).isEqualTo(ExitStatus.USAGE))
        .hasMessageMatching("mnt/a: in the mount at .*/mnt, and src2/b in another at .*/mnt2; .*");
  }

  @Test
  void find_mountInsideTheSourceOfAnother_isTheInnerOne() throws Exception {
    serve("src/inner", "src3");

    assertThat(find("src/inner/x").dataset().mount().mountpoint()).endsWith("/src/inner");
    assertThat(find("src/inner2").paths()).containsExactly(FileName.of("inner2"));
  }

  @Test
  void find_sourceMountedTwice_asksForTheMountPoint() throws Exception {
    serve("mnt2", "src");

    assertThatThrownBy(() -> find("src/a"))
        .isInstanceOfSatisfying(
            MountFailure.class, e -> assertThat(e.exitStatus()).isEqualTo(ExitStatus.USAGE))
        .hasMessageMatching(".*/src/a: the source of the mounts at .*; name it below one of them");
    assertThat(find("mnt2/a").paths()).containsExactly(FileName.of("a"));
  }

  @ParameterizedTest
  @CsvSource({"elsewhere", "mnt2", "src-2/a", "/", "x\udcff"})
  void find_notServed_isNotMounted(String text) {
    assertThatThrownBy(() -> find("mnt/a", text))
        .isInstanceOfSatisfying(
            MountFailure.class, e -> assertThat(e.exitStatus()).isEqualTo(ExitStatus.NOT_MOUNTED))
        .hasMessageContaining("not in a dataset mounted by pmfs");
  }

  @Test
  void find_mountOfAnotherUser_saysSo() {
    Path theirs = world.makeDirectory("theirs");
    world.mountinfo(TestMachine.line(theirs, "fuse.pmfs", "/src"));

    assertThatThrownBy(() -> find("theirs/a"))
        .isInstanceOfSatisfying(
            MountFailure.class, e -> assertThat(e.exitStatus()).isEqualTo(ExitStatus.NOT_MOUNTED))
        .hasMessageContaining("by another user, or with another PMFS_RUNTIME_DIR");
  }
}
