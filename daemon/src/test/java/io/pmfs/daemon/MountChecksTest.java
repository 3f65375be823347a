package io.pmfs.daemon;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.pmfs.daemon.process.Supervision;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.places.Surroundings;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.TestMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class MountChecksTest {
  @TempDir private Path temporary;
  private TestMachine world;

  @BeforeEach
  void makeWorld() {
    world = new TestMachine(temporary);
  }

  @Test
  void run_allWell_makesPrivateTierDirectories() throws Exception {
    check(Map.of());

    Path tier = world.directory.resolve("cache");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(tier)))
        .isEqualTo("rwx------");
    assertThat(tier.resolve("state")).isDirectory();
  }

  @Test
  void run_again_isFine() {
    assertThatCode(
            () -> {
              check(Map.of());
              check(Map.of());
            })
        .doesNotThrowAnyException();
  }

  @Test
  void run_sourceMissing_isUsage() throws Exception {
    MountSettings settings = world.settings(Map.of());
    Files.delete(settings.source().path());

    assertFails(settings, ExitStatus.USAGE, "/src: source: no such file or directory");
  }

  @Test
  void run_sourceIsAFileThatIsSaidToBeTar_isFine() throws Exception {
    MountSettings settings = world.settings(Map.of(MountOption.SOURCE_FORM, List.of("tar")));
    Files.delete(settings.source().path());
    Files.writeString(settings.source().path(), "x");

    assertThatCode(() -> check(settings)).doesNotThrowAnyException();
  }

  @Test
  void run_sourceIsAFileNotNamedTar_isUsage() throws Exception {
    MountSettings settings = world.settings(Map.of());
    Files.delete(settings.source().path());
    Files.writeString(settings.source().path(), "x");

    assertFails(settings, ExitStatus.USAGE, "/src: source: not a directory");
  }

  @Test
  void run_sourceIsAFileThoughADirectoryWasAskedFor_isUsage() throws Exception {
    MountSettings settings = world.settings(Map.of(MountOption.SOURCE_FORM, List.of("directory")));
    Files.delete(settings.source().path());
    Files.writeString(settings.source().path(), "x");

    assertFails(settings, ExitStatus.USAGE, "/src: source: not a directory");
  }

  @ParameterizedTest
  @CsvSource({
    "mnt/access,/mnt/access: access log: lies inside the mount point",
    "src/access,/src/access: access log: lies inside the source",
    "log,/log: access log: is the log file; name another file"
  })
  void run_accessLogWhereItMayNotBe_isUsage(String file, String error) throws Exception {
    MountSettings settings =
        world.settings(
            Map.of(MountOption.ACCESS_LOG, List.of(file), MountOption.LOG_FILE, List.of("log")));

    assertFails(settings, ExitStatus.USAGE, error);
  }

  @Test
  void run_mountpointMissing_tellsHowToMakeIt() throws Exception {
    MountSettings settings = world.settings(Map.of());
    Files.delete(settings.mountpoint());

    assertFails(
        settings, ExitStatus.USAGE, "/mnt: mount point: no such directory; create it: mkdir");
  }

  @Test
  void run_mountpointIsAFile_isUsage() throws Exception {
    MountSettings settings = world.settings(Map.of());
    Files.delete(settings.mountpoint());
    Files.writeString(settings.mountpoint(), "x");

    assertFails(settings, ExitStatus.USAGE, "/mnt: mount point: not a directory");
  }

  @Test
  void run_mountpointNotEmpty_isUsage() throws Exception {
    MountSettings settings = world.settings(Map.of());
    Files.writeString(settings.mountpoint().resolve("x"), "x");

    assertFails(settings, ExitStatus.USAGE, "/mnt: mount point: not empty");
  }

  @Test
  void run_mountpointOfAnotherUser_isUsage() throws Exception {
    MountSettings settings = world.settings(Map.of());
    Files.setAttribute(settings.mountpoint(), "unix:mode", 01777);
    world.uid = 4711;

    assertFails(settings, ExitStatus.USAGE, "/mnt: mount point: not yours to mount on");
  }

  @Test
  void run_mountpointThatOthersCanReplace_isUsage() throws Exception {
    MountSettings settings = world.settings(Map.of());
    world.uid = 4711;
    Path above = world.directory;
    Files.setPosixFilePermissions(above, PosixFilePermissions.fromString("rwxrwxrwx"));

    assertFails(
        settings, ExitStatus.USAGE, "/mnt: mount point: everybody can write in " + above + " ");
  }

  @Test
  void run_mountpointInsideSource_isUsage() throws Exception {
    Path inner = world.makeDirectory("src/inner");
    MountSettings settings =
        Configuration.resolve(
                new Configuration.Request(Map.of(), null, "src", inner.toString()),
                world.surroundings())
            .toSettings(world.surroundings());

    assertFails(settings, ExitStatus.USAGE, "/src/inner: mount point: lies inside the source");
  }

  @Test
  void run_sourceIsTheMountpoint_isUsage() throws Exception {
    world.makeDirectory("src");
    MountSettings settings =
        Configuration.resolve(
                new Configuration.Request(Map.of(), null, "src", "src"), world.surroundings())
            .toSettings(world.surroundings());

    assertFails(settings, ExitStatus.USAGE, "/src: mount point: would hide the source");
  }

  @Test
  void run_tierInsideSource_isUsage() throws Exception {
    assertFails(tier("ssd:src/cache"), ExitStatus.USAGE, "tier ssd: lies inside the source");
  }

  @Test
  void run_tierInsideMountpoint_isUsage() throws Exception {
    assertFails(tier("ssd:mnt/cache"), ExitStatus.USAGE, "tier ssd: lies inside the mount point");
  }

  @Test
  void run_tierIsAFile_isUsage() throws Exception {
    Files.writeString(world.directory.resolve("file"), "x");

    assertFails(
        tier("ssd:file"),
        ExitStatus.USAGE,
        "/file: tier ssd: not a directory; name a directory, or use the file as a pool: pm:");
  }

  @Test
  void run_tierOnAFileSystemThatRefuses_isUsage() throws Exception {
    assertFails(tier("ssd:/proc/self/pmfs"), ExitStatus.USAGE, "tier ssd: cannot be used");
  }

  @Test
  void run_nothingWouldFit_namesTheNumbers() throws Exception {
    assertFails(
        world.settings(
            Map.of(
                MountOption.KEEP_FREE, List.of("100%"),
                MountOption.STATE_DIR, List.of("state"))),
        ExitStatus.USAGE,
        "no room for copies");
  }

  @Test
  void run_diskFullOfOurCopies_isFine() throws Exception {
    Files.writeString(world.makeDirectory("cache").resolve("copy"), "x");

    assertThatCode(() -> check(Map.of(MountOption.KEEP_FREE, List.of("100%"))))
        .doesNotThrowAnyException();
  }

  @Test
  void run_stateOnTheNetwork_isUsage() throws Exception {
    world.mountinfo(TestMachine.line(world.makeDirectory("net"), "nfs4", "srv:/"));

    assertFails(
        world.settings(Map.of(MountOption.STATE_DIR, List.of("net/state"))),
        ExitStatus.USAGE,
        "/net/state: state: on a network file system (nfs4)");
  }

  @Test
  void run_noLocalTierForTheState_asksForStateDir() throws Exception {
    world.mountinfo(TestMachine.line(world.makeDirectory("net"), "lustre", "mds:/"));

    assertFails(tier("ssd:net/tier"), ExitStatus.USAGE, "give one with --state-dir");
  }

  @Test
  void run_noFuseDevice_cannot() throws Exception {
    Files.delete(world.root.resolve("dev/fuse"));

    assertFails(world.settings(Map.of()), ExitStatus.CANNOT, "dev/fuse: missing");
  }

  @Test
  void run_noLibrary_cannotAndNamesThePackage() throws Exception {
    world.write("etc/ld.so.cache", "libfuse.so.3\0");

    assertFails(
        world.settings(Map.of(MountOption.BRIDGE, List.of("jnr"))),
        ExitStatus.CANNOT,
        "apt-get install libfuse2");
  }

  @Test
  void run_kernelBridgeByUserWithFusermount_needsNoLibrary() throws Exception {
    world.uid = 4711;
    world.write("etc/ld.so.cache", "libfuse.so.3\0");
    world.fusermount("fusermount3");
    MountSettings settings = world.settings(Map.of(MountOption.BRIDGE, List.of("kernel")));

    assertThatCode(() -> check(settings)).doesNotThrowAnyException();
  }

  @Test
  void run_rootWithoutCapability_cannot() throws Exception {
    world.uid = 0;
    world.write("proc/self/status", "CapEff:\t00000000a80425fb\n");

    assertFails(world.settings(Map.of()), ExitStatus.CANNOT, "CAP_SYS_ADMIN");
  }

  @Test
  void run_userWithoutFusermount_cannot() throws Exception {
    world.uid = 4711;
    world.environment.put("PATH", world.makeDirectory("bin").toString());
    MountSettings settings = world.settings(Map.of());

    assertFails(settings, ExitStatus.CANNOT, "fusermount: not found");
  }

  @Test
  void run_allowOtherForUser_needsFuseConf() throws Exception {
    world.uid = 4711;
    MountSettings settings = world.settings(Map.of(MountOption.ALLOW_OTHER, List.of("true")));
    world.write("etc/fuse.conf", "# user_allow_other\n");

    assertFails(settings, ExitStatus.USAGE, "--allow-other: not allowed for users");
  }

  @Test
  void run_forUserWithoutTheLauncher_isRefused() throws Exception {
    assertFails(
        world.settings(Map.of(MountOption.USER, List.of("ada"))), ExitStatus.USAGE, "--user: ");
  }

  @Test
  void run_forUserMountedByRoot_needsNeitherFuseNorTheMountPoint() throws Exception {
    Files.delete(world.root.resolve("dev/fuse"));
    MountSettings settings = world.settings(Map.of(MountOption.USER, List.of("ada")));
    Files.createFile(settings.mountpoint().resolve("seen by root only"));

    new MountChecks(settings, world.surroundings(), world.surroundings().mounts(), rootMounts())
        .run();
  }

  @Test
  void run_forUserMountedByRoot_refusesWhatRootDidNotAllow() throws Exception {
    world.uid = 4711;
    assertRefusedForUser(MountOption.BRIDGE, "jnr", "--bridge jnr: --user works only with");
    assertRefusedForUser(MountOption.ALLOW_OTHER, "true", "--allow-other: with --user, root must");
  }

  private void assertRefusedForUser(MountOption<?> option, String value, String message)
      throws Exception {
    MountSettings settings = world.settings(Map.of(option, List.of(value)));
    MountChecks checks =
        new MountChecks(
            settings, world.surroundings(), world.surroundings().mounts(), rootMounts());

    assertThat(catchThrowableOfType(MountFailure.class, checks::run)).hasMessageContaining(message);
  }

  /** The link to a supervisor that mounts. */
  private @Nullable Supervision rootMounts() throws MountFailure {
    Map<String, String> environment =
        Map.of(
            Supervision.DESCRIPTOR,
            "3",
            Supervision.FILE,
            world.directory.resolve("session").toString(),
            Supervision.REQUESTS,
            "5",
            Supervision.ANSWERS,
            "4");
    return Supervision.of(
        new Surroundings(environment, world.directory, world.uid, "ada", world.root));
  }

  private MountSettings tier(String text) throws MountFailure {
    return world.settings(Map.of(MountOption.TIER, List.of(text)));
  }

  private void check(Map<MountOption<?>, List<String>> options) throws MountFailure {
    check(world.settings(options));
  }

  private void check(MountSettings settings) throws MountFailure {
    new MountChecks(settings, world.surroundings(), world.surroundings().mounts(), null).run();
  }

  private void assertFails(MountSettings settings, int status, String message) {
    MountFailure failure = catchThrowableOfType(MountFailure.class, () -> check(settings));

    assertThat(failure).hasMessageContaining(message);
    assertThat(failure.exitStatus()).isEqualTo(status);
    assertThat(failure.line()).doesNotContain("\n");
  }
}
