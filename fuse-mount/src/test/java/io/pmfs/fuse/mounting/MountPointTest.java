package io.pmfs.fuse.mounting;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.fuse.mounting.MountException.Reason;
import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.Posix;
import io.pmfs.fuse.system.Resolution;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Root's mount at users/m, where the owner of users/ changes names, and an unrelated mount at
 * other/m. Needs root.
 */
@Timeout(60)
final class MountPointTest {
  private static final LibC LIBC = LibC.INSTANCE;

  @TempDir private Path temporary;
  private Path users = Path.of("unset");
  private Path other = users;
  private Path place = users;
  private Path canary = users;
  private String device = "unset";

  @BeforeEach
  void mountBoth() throws Exception {
    assumeTrue(LIBC.geteuid() == 0, "mounting takes root");
    users = temporary.toRealPath().resolve("users");
    other = temporary.toRealPath().resolve("other");
    place = Files.createDirectories(users.resolve("m"));
    canary = Files.createDirectories(other.resolve("m"));
    run("mount", "-n", "-t", "tmpfs", "-o", "ro,nosuid,nodev", "own", place.toString());
    run("mount", "-n", "-t", "tmpfs", "canary", canary.toString());
    device = Objects.requireNonNull(SessionMount.deviceAt(place));
  }

  @AfterEach
  void unmountAll() throws Exception {
    List<String> left = new ArrayList<>(mounts());
    for (int i = left.size() - 1; i >= 0; i--) {
      if (left.get(i).startsWith(temporary.toRealPath() + "/")) {
        run("umount", "-l", left.get(i));
      }
    }
  }

  private static void run(String... line) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(line).inheritIO().start();
    assertThat(process.waitFor(20, TimeUnit.SECONDS)).as("%s", List.of(line)).isTrue();
    assertThat(process.exitValue()).as("%s", List.of(line)).isZero();
  }

  private static List<String> mounts() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/mountinfo"), StandardCharsets.ISO_8859_1).stream()
        .map(line -> line.split(" ", -1)[4])
        .toList();
  }

  private static String optionsAt(Path path) throws IOException {
    return Files.readAllLines(Path.of("/proc/self/mountinfo"), StandardCharsets.ISO_8859_1).stream()
        .map(line -> line.split(" ", -1))
        .filter(fields -> fields[4].equals(path.toString()))
        .map(fields -> fields[5])
        .findFirst()
        .orElseThrow();
  }

  private static MountPoint open(Path path, Resolution way) throws MountException {
    return MountPoint.open(path, way.beneath());
  }

  private void assertCanaryIsAsBefore() throws IOException {
    assertThat(mounts()).contains(canary.toString());
    assertThat(optionsAt(canary)).startsWith("rw,").doesNotContain("noexec");
  }

  /** The owner of a directory above can do this at any time. */
  private Path replaceByLink(Path directory, Path target) throws IOException {
    Path moved = directory.resolveSibling("moved");
    Files.move(directory, moved);
    Files.createSymbolicLink(directory, target);
    return moved;
  }

  @ParameterizedTest
  @EnumSource
  void unmount_isGone(Resolution way) throws Exception {
    for (boolean lazy : new boolean[] {true, false}) {
      try (MountPoint point = open(place, way)) {
        assertThat(point.shows(device)).isTrue();
        point.unmount(device, lazy);
        assertThat(point.shows(device)).isFalse();
      }
      assertThat(mounts()).doesNotContain(place.toString());
      run("mount", "-n", "-t", "tmpfs", "own", place.toString());
      device = Objects.requireNonNull(SessionMount.deviceAt(place));
    }
    assertCanaryIsAsBefore();
  }

  @ParameterizedTest
  @EnumSource
  void open_directoryAboveIsALink_isRefused(Resolution way) throws Exception {
    replaceByLink(users, other);

    assertThatThrownBy(() -> open(place, way).close())
        .isInstanceOf(MountException.class)
        .hasMessageContaining("without symbolic links");
  }

  @ParameterizedTest
  @EnumSource
  void unmount_mountPointIsALink_unmountsNothing(Resolution way) throws Exception {
    Path moved = users.resolveSibling("moved");
    Files.move(users, moved);
    Files.createDirectory(users);
    Files.createSymbolicLink(place, canary);

    for (boolean lazy : new boolean[] {true, false}) {
      try (MountPoint point = open(place, way)) {
        point.unmount(device, lazy);
        assertThat(point.abort(device)).isFalse();
        // Not even if the canary's device is given.
        point.unmount(Objects.requireNonNull(SessionMount.deviceAt(canary)), lazy);
      }
    }

    assertCanaryIsAsBefore();
    assertThat(mounts()).contains(moved.resolve("m").toString());
  }

  @ParameterizedTest
  @EnumSource
  void unmount_namesChangedSinceOpen_unmountsWhatWasMeant(Resolution way) throws Exception {
    for (boolean lazy : new boolean[] {true, false}) {
      MountPoint point = open(place, way);
      Path moved = replaceByLink(users, other);
      try (point) {
        point.unmount(device, lazy);
      }
      assertThat(mounts()).doesNotContain(moved.resolve("m").toString());
      assertCanaryIsAsBefore();
      Files.delete(users);
      Files.move(moved, users);
      run("mount", "-n", "-t", "tmpfs", "own", place.toString());
      device = Objects.requireNonNull(SessionMount.deviceAt(place));
    }
  }

  /**
   * In a namespace where it is no mount point, the directory can be renamed, and its mount moves
   * along.
   */
  @ParameterizedTest
  @EnumSource
  void unmount_anotherMountPointWasMovedThere_isLeftAlone(Resolution way) throws Exception {
    for (Path path : List.of(place, canary)) {
      run("umount", "-l", path.toString());
    }
    Process elsewhere =
        new ProcessBuilder("unshare", "-m", "--propagation", "private", "cat").start();
    try {
      elsewhere.getOutputStream().write('x');
      elsewhere.getOutputStream().flush();
      assertThat(elsewhere.getInputStream().read()).isEqualTo('x');
      run("mount", "-n", "-t", "tmpfs", "own", place.toString());
      run("mount", "-n", "-t", "tmpfs", "canary", canary.toString());
      device = Objects.requireNonNull(SessionMount.deviceAt(place));
      try (MountPoint point = open(place, way)) {
        String pid = Long.toString(elsewhere.pid());
        run("nsenter", "-t", pid, "-m", "mv", place.toString(), users.resolve("x").toString());
        run("nsenter", "-t", pid, "-m", "mv", canary.toString(), place.toString());
        point.unmount(device, false);
        point.unmount(device, true);
        assertThat(point.abort(device)).isFalse();
      }
    } finally {
      elsewhere.destroyForcibly().waitFor();
    }
    assertThat(mounts()).contains(place.toString(), users.resolve("x").toString());
  }

  @ParameterizedTest
  @EnumSource
  void unmount_openFile_isBusyUnlessLazy(Resolution way) throws Exception {
    run("mount", "-n", "-o", "remount,rw", place.toString());
    try (var open = Files.newOutputStream(place.resolve("file"));
        MountPoint point = open(place, way)) {
      assertThat(open).isNotNull();
      assertThatThrownBy(() -> point.unmount(device, false))
          .isInstanceOfSatisfying(
              MountException.class, e -> assertThat(e.reason()).isEqualTo(Reason.BUSY));
      assertThat(point.shows(device)).isTrue();
      point.unmount(device, true);
      assertThat(point.shows(device)).isFalse();
    }
  }

  @ParameterizedTest
  @EnumSource
  void unmount_coveredMount_leavesBothAlone(Resolution way) throws Exception {
    run("mount", "-n", "-t", "tmpfs", "cover", place.toString());
    try (MountPoint point = open(place, way)) {
      point.unmount(device, true);
      point.unmount(device, false);
    }
    assertThat(mounts().stream().filter(place.toString()::equals)).hasSize(2);
  }

  @ParameterizedTest
  @EnumSource
  void mount_throughALink_isRefused(Resolution way) throws Exception {
    Path moved = replaceByLink(users, other);
    try (MountPoint point = open(moved.resolve("l"), way)) {
      Files.createSymbolicLink(moved.resolve("l"), canary);
      assertThatThrownBy(() -> point.mount("new", "tmpfs", MountPoint.MS_NOEXEC, "size=1m"))
          .isInstanceOf(MountException.class);
    }
    assertThat(mounts().stream().filter(canary.toString()::equals)).hasSize(1);
    assertCanaryIsAsBefore();
  }

  @ParameterizedTest
  @EnumSource
  void bind_withNoExec_isForbiddenThereOnly(Resolution way) throws Exception {
    Path further = Files.createDirectory(users.resolve("a b\\c\nd"));
    try (MountPoint from = open(place, way);
        MountPoint to = open(further, way)) {
      assertThat(to.bind(from, device, true)).isTrue();
      assertThat(to.shows(device)).isTrue();
    }
    String written = SessionMount.escaped(further);
    assertThat(optionsAt(Path.of(written))).startsWith("ro,nosuid,nodev,noexec");
    assertThat(optionsAt(place)).doesNotContain("noexec");
    try (MountPoint to = open(further, way)) {
      to.unmount(device, false);
      assertThat(to.shows(device)).isFalse();
    }
    assertThat(mounts()).contains(place.toString());
  }

  @ParameterizedTest
  @EnumSource
  void bind_anotherMountThere_isNotBound(Resolution way) throws Exception {
    Path further = Files.createDirectory(users.resolve("further"));
    try (MountPoint from = open(canary, way);
        MountPoint to = open(further, way)) {
      assertThat(to.bind(from, device, false)).isFalse();
    }
    assertThat(mounts()).doesNotContain(further.toString());
  }

  /** Its requests are not answered, and root may not enter it: neither matters. */
  @ParameterizedTest
  @EnumSource
  void unmount_hangingMountOfAUser_doesNotWaitForIt(Resolution way) throws Exception {
    Path further = Files.createDirectory(users.resolve("further"));
    Path hangs = Files.createDirectory(users.resolve("hangs"));
    for (String how : List.of("unmount", "detach", "abort")) {
      int file = LIBC.open(Posix.terminated("/dev/fuse"), Posix.O_RDWR | Posix.O_CLOEXEC);
      assumeTrue(file >= 0, "no /dev/fuse");
      try (MountPoint point = open(hangs, way);
          MountPoint to = open(further, way)) {
        String data = "fd=" + file + ",rootmode=40000,user_id=65534,group_id=65534";
        point.mount("nobody's", "fuse.test", MountPoint.MS_NODEV, data);
        String session = Objects.requireNonNull(SessionMount.deviceAt(hangs));
        assertThat(to.bind(point, session, false)).isTrue();
        to.unmount(session, false);
        switch (how) {
          case "unmount" -> point.unmount(session, false);
          case "detach" -> point.unmount(session, true);
          default -> assertThat(point.abort(session)).isTrue();
        }
        assertThat(mounts()).doesNotContain(hangs.toString(), further.toString());
      } finally {
        LIBC.close(file);
      }
    }
  }

  /** Flags that no kernel knows, as on a kernel that cannot mount beneath another mount. */
  private static final int UNKNOWN_FLAGS = 1 << 30;

  private static final int KNOWN_FLAGS = 0x244;

  private Path source() throws Exception {
    Path source = Files.createDirectory(temporary.toRealPath().resolve("source"));
    Files.writeString(Files.createDirectory(source.resolve("below")).resolve("file"), "below");
    Files.writeString(source.resolve("file"), "content");
    run("mount", "-n", "-t", "tmpfs", "inner", source.resolve("below").toString());
    Files.writeString(source.resolve("below/inner"), "inner");
    return source;
  }

  @ParameterizedTest
  @ValueSource(ints = {KNOWN_FLAGS, UNKNOWN_FLAGS})
  void replace_showsTheDirectoryReadOnly(int first) throws Exception {
    Path source = source();
    run("mount", "-n", "-o", "remount,bind,ro,nosuid,nodev,noexec", place.toString());
    String number;
    try (DirectoryStore directory = new DirectoryStore(source);
        MountPoint point = MountPoint.open(place)) {
      number = point.replace(device, directory, first);
      assertThat(point.replace(device, directory, first)).as("it is gone").isNull();
    }

    assertThat(mounts().stream().filter(place.toString()::equals)).hasSize(1);
    assertThat(optionsAt(place)).startsWith("ro,nosuid,nodev,noexec");
    assertThat(
            Files.readAllLines(Path.of("/proc/self/mountinfo"), StandardCharsets.ISO_8859_1)
                .stream()
                .filter(line -> line.contains(" " + place + " ")))
        .singleElement()
        .satisfies(line -> assertThat(line).startsWith(number + " ").doesNotContain(" shared:"));
    assertThat(place.resolve("file")).hasContent("content");
    assertThat(place.resolve("below/file"))
        .as("what is mounted there stays there")
        .hasContent("below");
    assertThatThrownBy(() -> Files.writeString(place.resolve("new"), ""))
        .hasMessageContaining("Read-only");
    assertThat(Files.writeString(source.resolve("new"), "")).exists();
    assertCanaryIsAsBefore();
  }

  @ParameterizedTest
  @ValueSource(ints = {KNOWN_FLAGS, UNKNOWN_FLAGS})
  void replace_namesChangedSinceOpen_replacesWhatWasMeant(int first) throws Exception {
    try (DirectoryStore directory = new DirectoryStore(source());
        MountPoint point = MountPoint.open(place)) {
      Path moved = replaceByLink(users, other);
      assertThat(point.replace(device, directory, first)).isNotNull();
      assertThat(moved.resolve("m/file")).hasContent("content");
    }
    assertCanaryIsAsBefore();
    assertThat(canary).isEmptyDirectory();
  }

  @Test
  void replace_coveredMount_leavesBothAlone() throws Exception {
    run("mount", "-n", "-t", "tmpfs", "cover", place.toString());
    try (DirectoryStore directory = new DirectoryStore(source());
        MountPoint point = MountPoint.open(place)) {
      assertThat(point.replace(device, directory)).isNull();
    }
    assertThat(mounts().stream().filter(place.toString()::equals)).hasSize(2);
  }

  /** As after the death of the daemon. */
  @Test
  void replace_mountThatNobodyServes_doesNotWaitForIt() throws Exception {
    Path hangs = Files.createDirectory(users.resolve("hangs"));
    int file = LIBC.open(Posix.terminated("/dev/fuse"), Posix.O_RDWR | Posix.O_CLOEXEC);
    assumeTrue(file >= 0, "no /dev/fuse");
    try (DirectoryStore directory = new DirectoryStore(source());
        MountPoint point = MountPoint.open(hangs)) {
      String data = "fd=" + file + ",rootmode=40000,user_id=0,group_id=0";
      point.mount("nobody's", "fuse.test", MountPoint.MS_NODEV, data);
      String session = Objects.requireNonNull(SessionMount.deviceAt(hangs));
      assertThat(point.replace(session, directory)).isNotNull();
      assertThat(hangs.resolve("file")).hasContent("content");
    } finally {
      LIBC.close(file);
    }
  }
}
