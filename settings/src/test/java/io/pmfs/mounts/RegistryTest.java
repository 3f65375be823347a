package io.pmfs.mounts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.settings.TestMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class RegistryTest {
  private static final Path MOUNTPOINT = Path.of("/mnt/dätä set");

  @TempDir private Path temporary;
  private TestMachine world;

  @BeforeEach
  void makeWorld() {
    world = new TestMachine(temporary);
  }

  @Test
  void directory_byUser_isRunOrTmp() {
    world.environment.remove("PMFS_RUNTIME_DIR");
    world.uid = 0;
    assertThat(Registry.directory(world.surroundings())).isEqualTo(Path.of("/run/pmfs"));
    world.uid = 1000;
    assertThat(Registry.directory(world.surroundings())).isEqualTo(Path.of("/tmp/pmfs-1000"));
  }

  @Test
  void open_newDirectory_isPrivate() throws Exception {
    Path directory = world.registry().directory();

    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(directory)))
        .isEqualTo("rwx------");
  }

  @Test
  void open_directoryOfAnotherUser_isRefused() throws Exception {
    world.registry();
    world.uid = 4711;

    assertThatThrownBy(world::registry).hasMessageContaining("not trusted");
  }

  @Test
  void open_symbolicLink_isRefused() throws Exception {
    Files.createSymbolicLink(world.directory.resolve("run"), world.makeDirectory("elsewhere"));

    assertThatThrownBy(world::registry).isInstanceOf(MountFailure.class);
  }

  @Test
  void open_directoryThatOthersCanWriteIn_isRefused() throws Exception {
    Path directory = world.makeDirectory("run");
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxrwxrwx"));

    assertThatThrownBy(world::registry)
        .isInstanceOfSatisfying(
            MountFailure.class, e -> assertThat(e.exitStatus()).isEqualTo(ExitStatus.USAGE))
        .hasMessageContaining("everybody can write in " + directory);
  }

  @Test
  void open_directoryThatOthersCanRead_isClosed() throws Exception {
    Path directory = world.makeDirectory("run");
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));

    world.registry();

    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(directory)))
        .isEqualTo("rwx------");
  }

  @Test
  void register_takenMountpoint_isNull() throws Exception {
    Registry registry = world.registry();
    try (Registration first = register(registry)) {
      assertThat(first.socket()).isEqualTo(registry.socketOf(MOUNTPOINT));
      assertThat(registry.register(MOUNTPOINT)).isNull();
      assertThat(registry.isRunning(MOUNTPOINT)).isTrue();
    }
    assertThat(registry.isRunning(MOUNTPOINT)).isFalse();
    register(registry).close();
  }

  @Test
  void find_published_isTheEntry() throws Exception {
    Registry registry = world.registry();
    try (Registration registration = register(registry)) {
      assertThat(registry.find(MOUNTPOINT)).isNull();
      DaemonRecord entry = publish(registration);

      assertThat(registry.find(MOUNTPOINT)).isEqualTo(entry);
      assertThat(registry.running()).containsExactly(entry);
      assertThat(registry.find(Path.of("/mnt/other"))).isNull();
    }
    assertThat(registry.find(MOUNTPOINT)).isNull();
  }

  @Test
  void registerDetached_killedOne_isClearedByTheNextMountThere() throws Exception {
    Registry registry = world.registry();
    Registration killed = Objects.requireNonNull(registry.registerDetached(MOUNTPOINT, "0:40"));
    Path left = Path.of(killed.socket().toString().replace(".sock", ".json"));
    killed.publish(
        DaemonRecord.of(MOUNTPOINT.toString(), "/s", 1, "/x", "/log")
            .withDevice("0:40")
            .withSocket(Path.of("/x"), true));
    byte[] text = Files.readAllBytes(left);
    killed.close();
    assertThat(registry.directory()).isEmptyDirectory();
    Files.write(left, text);
    assertThat(registry.detached()).isEmpty();

    try (Registration next = register(registry)) {
      assertThat(next.socket()).isEqualTo(registry.socketOf(MOUNTPOINT));
      assertThat(left).doesNotExist();
    }
  }

  @Test
  void ofMount_ofAFurtherMount_isItsDaemon() throws Exception {
    Registry registry = world.registry();
    try (Registration registration = register(registry)) {
      DaemonRecord first =
          DaemonRecord.of(MOUNTPOINT.toString(), "/s", 1, "/x", "/log").withDevice("0:40");
      registration.publish(first.withSessions(List.of("0:41", "0:42")));

      assertThat(Objects.requireNonNull(registry.ofMount(mount("0:42", "/s"))).running()).isTrue();
      assertThat(registry.ofMount(mount("0:40", "/s"))).as("it has ended").isNull();
      assertThat(registry.ofMount(mount("0:42", "/another")))
          .as("its number is used again")
          .isNull();
      assertThat(first.devices()).as("of an older pmfs").containsExactly("0:40");
    }
  }

  private static MountTable.Mount mount(String device, String source) {
    return new MountTable.Mount(
        Path.of("/mnt/other"), "fuse.pmfs", source, "ro", device, true, "7");
  }

  @Test
  void sweepHolders_ofADaemonThatDied_removesItsFilesOnceItsMountsAreGone() throws Exception {
    Registry registry = world.registry();
    DaemonRecord entry =
        DaemonRecord.of(MOUNTPOINT.toString(), "/s", 1, "/x", "/log")
            .withDevice("0:40")
            .withSessions(List.of("0:40", "0:41"));
    Registration killed = register(registry);
    killed.publish(entry);
    Path left = Path.of(killed.socket().toString().replace(".sock", ".json"));
    byte[] text = Files.readAllBytes(left);
    world.mountinfo("1 0 0:41 / /mnt/other rw - fuse.pmfs /s rw");
    registry.sweepHolders(world.surroundings());
    assertThat(left).as("of a daemon that runs").exists();
    killed.close();
    Files.write(left, text);

    registry.sweepHolders(world.surroundings());
    assertThat(left).as("still mounted").exists();
    world.mountinfo("1 0 0:41 / /mnt/other rw - fuse.pmfs /another rw");
    registry.sweepHolders(world.surroundings());
    assertThat(left).doesNotExist();
  }

  @Test
  void close_registration_leavesOnlyTheLockFile() throws Exception {
    Registry registry = world.registry();
    Registration registration = register(registry);
    publish(registration);
    Files.createFile(registration.socket());

    registration.close();
    registration.close();

    try (var files = Files.list(registry.directory())) {
      assertThat(files).allMatch(f -> f.toString().endsWith(".lock"));
    }
  }

  @Test
  void isSaved_daemonThatMarkedItsEnd_untilTheNextOneRegisters() throws Exception {
    Registry registry = world.registry();
    DaemonRecord entry =
        DaemonRecord.of(MOUNTPOINT.toString(), "/src", ProcessHandle.current().pid(), "/x", "/log");
    register(registry).close();
    assertThat(registry.isSaved(entry)).isFalse();

    try (Registration marked = register(registry)) {
      marked.markSaved();
    }
    assertThat(registry.isSaved(entry)).isTrue();

    register(registry).close();
    assertThat(registry.isSaved(entry)).isFalse();
  }

  @Test
  void close_twice_leavesTheSuccessorAlone() throws Exception {
    Registry registry = world.registry();
    Registration first = register(registry);
    first.close();
    try (Registration second = register(registry)) {
      DaemonRecord entry = publish(second);

      first.close();

      assertThat(registry.find(MOUNTPOINT)).isEqualTo(entry);
    }
  }

  @Test
  void forget_whatADeadDaemonLeft_isRemovedAndNotFoundBefore() throws Exception {
    Registry registry = world.registry();
    Registration registration = register(registry);
    publish(registration);
    Path entryFile = registry.directory().resolve(Registry.nameOf(MOUNTPOINT) + ".json");
    byte[] left = Files.readAllBytes(entryFile);
    registration.close();
    Files.write(entryFile, left);
    Files.createFile(registry.socketOf(MOUNTPOINT));

    assertThat(registry.running()).isEmpty();
    assertThat(registry.find(MOUNTPOINT)).isNull();
    assertThat(registry.last(MOUNTPOINT)).isNotNull();

    registry.forget(MOUNTPOINT);

    assertThat(entryFile).doesNotExist();
    assertThat(registry.socketOf(MOUNTPOINT)).doesNotExist();
  }

  @Test
  void running_garbageInTheDirectory_isIgnored() throws Exception {
    Registry registry = world.registry();
    Files.writeString(registry.directory().resolve("x.json"), "{nonsense");
    Files.writeString(registry.directory().resolve("y.json"), "{}");
    Files.writeString(registry.directory().resolve("z.json"), "");

    assertThat(registry.running()).isEmpty();
  }

  @Test
  void register_heldByAnotherProcess_isNullUntilItDies() throws Exception {
    Registry registry = world.registry();
    Process other =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                MountOwner.class.getName(),
                world.directory.toString())
            .start();
    try {
      assertThat(other.getInputStream().read()).isEqualTo('k');
      assertThat(registry.register(MOUNTPOINT)).isNull();
    } finally {
      other.destroyForcibly();
    }
    assertThat(other.waitFor(20, TimeUnit.SECONDS)).isTrue();
    register(registry).close();
  }

  @Test
  void socketOf_longDirectory_isRefused() throws Exception {
    world.environment.put("PMFS_RUNTIME_DIR", world.directory.resolve("x".repeat(100)).toString());
    Registry registry = world.registry();

    assertThatThrownBy(() -> registry.socketOf(MOUNTPOINT)).hasMessageContaining("too long");
  }

  private static Registration register(Registry registry) throws MountFailure {
    return Objects.requireNonNull(registry.register(MOUNTPOINT));
  }

  private static DaemonRecord publish(Registration registration) throws Exception {
    DaemonRecord entry =
        DaemonRecord.of(
            MOUNTPOINT.toString(), "/src", 42, registration.socket().toString(), "/log");
    registration.publish(entry);
    return entry;
  }

  /** Holds a mount point in a separate process. */
  static final class MountOwner {
    private MountOwner() {}

    public static void main(String[] args) throws Exception {
      TestMachine world = new TestMachine(Path.of(args[0]));
      Registration registration = world.registry().register(MOUNTPOINT);
      System.out.print(registration == null ? 'n' : 'k');
      System.out.flush();
      while (System.in.read() >= 0) {
        // until the test ends this process
      }
    }
  }
}
