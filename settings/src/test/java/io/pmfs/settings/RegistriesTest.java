package io.pmfs.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The files of two users, which needs root, and a daemon that gets a successor. */
final class RegistriesTest {
  private static final Path MOUNTPOINT = Path.of("/mnt/dataset");
  private static final int ADA = 4711;

  @TempDir private Path temporary;
  private TestMachine world;
  private Path ofAda;

  @BeforeEach
  void makeWorld() throws IOException {
    world = new TestMachine(temporary);
    assumeTrue(world.uid == 0, "needs root");
    world.makeDirectory("run");
    ofAda = world.makeDirectory("run-" + ADA);
    give(ofAda);
  }

  private static void give(Path path) throws IOException {
    Files.setAttribute(path, "unix:uid", ADA, java.nio.file.LinkOption.NOFOLLOW_LINKS);
  }

  /** As a daemon of Ada would; its files belong to her. */
  private Registration serve(Path directory, String socket) throws Exception {
    Registration registration =
        Objects.requireNonNull(Registry.own(directory).register(MOUNTPOINT));
    give(Files.createFile(registration.socket()));
    registration.publish(new Registry.Entry(MOUNTPOINT.toString(), "/source", 1, socket, "/log"));
    return registration;
  }

  private Registry.@Nullable Entry find() throws MountFailure {
    return Registries.open(world.surroundings()).find(MOUNTPOINT);
  }

  @Test
  void find_byRoot_seesUsersMountsUntilTheyEnd() throws Exception {
    assertThat(find()).isNull();
    try (Registration registration = serve(ofAda, ofAda + "/x")) {
      assertThat(find()).isNotNull();
      assertThat(Registries.open(world.surroundings()).running()).hasSize(1);
      assertThat(registration.socket()).exists();
    }
    assertThat(find()).isNull();
  }

  @Test
  void awaitSuccessor_ofADaemonThatHasMovedItsSocket_isThatDaemon() throws Exception {
    try (Registration registration = serve(ofAda, "/x")) {
      Registry.Entry now = Objects.requireNonNull(find());
      Registry.Entry before =
          new Registry.Entry(
              now.mountpoint(), now.source(), now.pid(), ofAda + "/before.sock", now.logFile());
      Registry.Entry found = Registries.open(world.surroundings()).awaitSuccessor(before);
      assertThat(found).isEqualTo(now);
      assertThat(registration.socket()).exists();
    }
  }

  @Test
  void find_byRoot_takesNoSocketOnTheUsersWord() throws Exception {
    try (Registration registration = serve(ofAda, "/run/of-root.sock")) {
      assertThat(Objects.requireNonNull(find()).socket())
          .isEqualTo(registration.socket().toString());
      Files.delete(registration.socket());
      give(Files.createSymbolicLink(registration.socket(), Path.of("/run/of-root.sock")));
      assertThat(find()).isNull();
    }
  }

  @Test
  void find_byRoot_ignoresDirectoriesOfOthers() throws Exception {
    Path forged = world.makeDirectory("run-4712");
    give(forged);
    try (Registration registration = serve(forged, "/x")) {
      assertThat(find()).isNull();
      assertThat(registration.socket()).exists();
    }
  }

  @Test
  void find_byRoot_leavesWhatADeadDaemonLeft() throws Exception {
    Path entry;
    try (Registration registration = serve(ofAda, "/x")) {
      entry = Path.of(registration.socket().toString().replace(".sock", ".json"));
      Files.copy(entry, temporary.resolve("kept"));
    }
    Files.copy(temporary.resolve("kept"), entry);

    assertThat(find()).isNull();
    assertThat(entry).exists();
  }

  @Test
  void find_byUser_seesWhatRootMountedForThem() throws Exception {
    Path made = Files.createDirectories(world.root.resolve("run/pmfs-" + ADA));
    give(made);
    Path own = world.makeDirectory("own");
    give(own);
    world.environment.put("PMFS_RUNTIME_DIR", own.toString());
    world.uid = ADA;
    try (Registration registration = serve(made, made + "/x")) {
      assertThat(find()).isNotNull();
      assertThat(registration.socket()).exists();
    }
  }

  @Test
  void detached_byRoot_seesUsersDetachedMountsByTheirOwnSockets() throws Exception {
    try (Registration registration =
        Objects.requireNonNull(Registry.own(ofAda).registerDetached(MOUNTPOINT, "0:40"))) {
      give(Files.createFile(registration.socket()));
      registration.publish(
          new Registry.Entry(
              MOUNTPOINT.toString(), "/source", 7, "/run/of-root.sock", "/log", "0:40", true));
      Registries registries = Registries.open(world.surroundings());

      assertThat(registries.detached())
          .singleElement()
          .satisfies(e -> assertThat(e.socket()).isEqualTo(registration.socket().toString()));
      assertThat(registries.running()).isEmpty();
      assertThat(find()).isNull();
      assertThat(Objects.requireNonNull(registries.detachment(MOUNTPOINT)).line())
          .isEqualTo(
              MOUNTPOINT
                  + ": no longer mounted: it was detached, and pid 7 serves the files that are"
                  + " still open; see pmfs status");
      assertThat(registries.detachment(Path.of("/mnt"))).isNull();
    }
  }

  /** A session that is also mounted at a second place. */
  private static final Path SECOND = Path.of("/jobs/42");

  @Test
  void find_atAnotherMountPointOfTheSession_isTheSameDaemon() throws Exception {
    Registry own = Registry.own(world.makeDirectory("run"));
    try (Registration registration = Objects.requireNonNull(own.register(MOUNTPOINT))) {
      registration.publish(
          new Registry.Entry(MOUNTPOINT.toString(), "/source", 7, "/x", "/log", "0:30"));
      world.mountinfo(
          TestMachine.line(MOUNTPOINT, "fuse.pmfs", "/source"),
          TestMachine.line(SECOND, "fuse.pmfs", "/source"));
      Registries registries = Registries.open(world.surroundings());

      assertThat(registries.find(SECOND)).isEqualTo(registries.find(MOUNTPOINT)).isNotNull();
      assertThat(registries.find(Path.of("/jobs/43"))).isNull();
      assertThat(registries.running()).hasSize(1);
      assertThat(registries.mounted())
          .extracting(Registry.Entry::mountpoint)
          .containsExactly(MOUNTPOINT.toString(), SECOND.toString());
      assertThat(registries.awaitAll(missed -> {})).hasSize(1);
    }
  }

  @Test
  void holder_isKnownWhileItsMountIsThere() throws Exception {
    Registry own = Registry.own(world.makeDirectory("run"));
    Holder holder = new Holder(SECOND.toString(), "0:30", "ada", 7, "42", "2026-11-25T09:00:00Z");
    own.hold(holder);
    world.mountinfo(TestMachine.line(SECOND, "fuse.pmfs", "/source"));
    Registries registries = Registries.open(world.surroundings());

    registries.sweepHolders();
    assertThat(registries.holder(SECOND, "0:30")).isEqualTo(holder);
    assertThat(registries.holder(SECOND, "0:31")).isNull();

    world.mountinfo();
    Registries.open(world.surroundings()).sweepHolders();
    assertThat(registries.holder(SECOND, "0:30")).isNull();
  }

  /** A mount whose daemon died: the kernel still has it, and the daemon's files remain. */
  private void kill() throws Exception {
    Path directory = world.makeDirectory("run");
    Registration registration =
        Objects.requireNonNull(Registry.own(directory).register(MOUNTPOINT));
    registration.publish(
        new Registry.Entry(MOUNTPOINT.toString(), "/source", 1, "/x", "/log", "0:30"));
    Path entry = Path.of(registration.socket().toString().replace(".sock", ".json"));
    byte[] left = Files.readAllBytes(entry);
    registration.close();
    Files.write(entry, left);
    world.mountinfo(TestMachine.line(MOUNTPOINT, "fuse.pmfs", "/source"));
  }

  @Test
  void awaitAll_noDaemonFollows_saysSoAndWhereToLook() throws Exception {
    kill();
    Registries registries =
        Registries.open(world.surroundings(), line -> {}, Duration.ofMillis(200));
    List<MountFailure> missed = new ArrayList<>();

    assertThat(registries.awaitAll(missed::add)).isEmpty();

    assertThat(missed)
        .singleElement()
        .satisfies(
            failure -> {
              assertThat(failure.exitStatus()).isEqualTo(ExitStatus.FAILED);
              assertThat(failure.line())
                  .isEqualTo(
                      MOUNTPOINT
                          + ": its daemon died, and the next one is not ready yet; see /log");
            });
  }

  @Test
  void await_longerThanTwoSeconds_tellsOnceWhatFor() throws Exception {
    kill();
    List<String> notices = new ArrayList<>();

    assertThat(
            Registries.open(world.surroundings(), notices::add, Duration.ofSeconds(3))
                .await(MOUNTPOINT))
        .isNull();

    assertThat(notices)
        .containsExactly(MOUNTPOINT + ": its daemon is being replaced; waiting for the next one");
  }
}
