package io.pmfs.mounts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.settings.TestMachine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The registries of two users, which need root, and a daemon that gets a successor. */
final class KnownMountsTest {
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
    give(path, ADA);
  }

  private static void give(Path path, int uid) throws IOException {
    Files.setAttribute(path, "unix:uid", uid, java.nio.file.LinkOption.NOFOLLOW_LINKS);
  }

  /** Registers like a daemon of Ada, who owns its files. */
  private Registration serve(Path directory, String socket) throws Exception {
    Registration registration =
        Objects.requireNonNull(Registry.own(directory).register(MOUNTPOINT));
    give(Files.createFile(registration.socket()));
    registration.publish(DaemonRecord.of(MOUNTPOINT.toString(), "/source", 1, socket, "/log"));
    giveAll(directory);
    return registration;
  }

  @Test
  void isSaved_byRoot_daemonOfAUserThatMarkedItsEnd_isTrue() throws Exception {
    Registration registration = Objects.requireNonNull(Registry.own(ofAda).register(MOUNTPOINT));
    registration.markSaved();
    registration.close();
    giveAll(ofAda);
    DaemonRecord ended =
        DaemonRecord.of(
            MOUNTPOINT.toString(),
            "/source",
            ProcessHandle.current().pid(),
            registration.socket().toString(),
            "/log");

    assertThat(KnownMounts.open(world.surroundings()).isSaved(ended)).isTrue();
  }

  private static void giveAll(Path directory) throws IOException {
    giveAll(directory, ADA);
  }

  private static void giveAll(Path directory, int uid) throws IOException {
    give(directory, uid);
    try (Stream<Path> files = Files.list(directory)) {
      for (Path file : files.toList()) {
        give(file, uid);
      }
    }
  }

  private @Nullable DaemonRecord find() throws MountFailure {
    return KnownMounts.open(world.surroundings()).find(MOUNTPOINT);
  }

  @Test
  void find_byRoot_seesUsersMountsUntilTheyEnd() throws Exception {
    assertThat(find()).isNull();
    try (Registration registration = serve(ofAda, ofAda + "/x")) {
      assertThat(find()).isNotNull();
      assertThat(KnownMounts.open(world.surroundings()).running()).hasSize(1);
      assertThat(registration.socket()).exists();
    }
    assertThat(find()).isNull();
  }

  @Test
  void awaitSuccessor_ofADaemonThatHasMovedItsSocket_isThatDaemon() throws Exception {
    try (Registration registration = serve(ofAda, "/x")) {
      DaemonRecord now = Objects.requireNonNull(find());
      DaemonRecord before =
          DaemonRecord.of(
              now.mountpoint(), now.source(), now.pid(), ofAda + "/before.sock", now.logFile());
      DaemonRecord found = KnownMounts.open(world.surroundings()).awaitSuccessor(before);
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

  /** A user can mount such a program on a directory of theirs. */
  @Test
  void open_byRoot_entersNoMountOfAUser() throws Exception {
    assumeTrue(Files.isWritable(Path.of("/dev/fuse")), "needs FUSE");
    String options = "fd=3,rootmode=40000,user_id=%d,group_id=0,allow_other".formatted(ADA);
    String mount = "exec 3<>/dev/fuse; mount -i -t fuse -o $0 hangs $1 && echo ready; read";
    Process hanging = new ProcessBuilder("bash", "-c", mount, options, "" + ofAda).start();
    try {
      assertThat(hanging.inputReader().readLine()).isEqualTo("ready");
      assertTimeoutPreemptively(
          Duration.ofSeconds(10),
          () -> assertThat(KnownMounts.open(world.surroundings()).all()).hasSize(1));
    } finally {
      hanging.destroyForcibly().waitFor();
      new ProcessBuilder("umount", "-l", "-i", "-c", "" + ofAda).start().waitFor();
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
          DaemonRecord.of(MOUNTPOINT.toString(), "/source", 7, "/run/of-root.sock", "/log")
              .withDevice("0:40")
              .withSocket(Path.of("/run/of-root.sock"), true));
      giveAll(ofAda);
      KnownMounts knownMounts = KnownMounts.open(world.surroundings());

      assertThat(knownMounts.detached())
          .singleElement()
          .satisfies(e -> assertThat(e.socket()).isEqualTo(registration.socket().toString()));
      assertThat(knownMounts.running()).isEmpty();
      assertThat(find()).isNull();
      assertThat(Objects.requireNonNull(knownMounts.detachment(MOUNTPOINT)).line())
          .isEqualTo(
              MOUNTPOINT
                  + ": no longer mounted: it was detached, and pid 7 serves the files that are"
                  + " still open; see pmfs status");
      assertThat(knownMounts.detachment(Path.of("/mnt"))).isNull();
    }
  }

  /** A session that is also mounted at a second place. */
  private static final Path SECOND = Path.of("/jobs/42");

  @Test
  void find_atAnotherMountPointOfTheSession_isTheSameDaemon() throws Exception {
    Registry own = Registry.own(world.makeDirectory("run"));
    try (Registration registration = Objects.requireNonNull(own.register(MOUNTPOINT))) {
      registration.publish(
          DaemonRecord.of(MOUNTPOINT.toString(), "/source", 7, "/x", "/log").withDevice("0:30"));
      world.mountinfo(
          TestMachine.line(MOUNTPOINT, "fuse.pmfs", "/source"),
          TestMachine.line(SECOND, "fuse.pmfs", "/source"));
      KnownMounts knownMounts = KnownMounts.open(world.surroundings());

      assertThat(knownMounts.find(SECOND)).isEqualTo(knownMounts.find(MOUNTPOINT)).isNotNull();
      assertThat(knownMounts.find(Path.of("/jobs/43"))).isNull();
      assertThat(knownMounts.running()).hasSize(1);
      assertThat(knownMounts.mounted())
          .extracting(DaemonRecord::mountpoint)
          .containsExactly(MOUNTPOINT.toString(), SECOND.toString());
      assertThat(knownMounts.awaitAll(missed -> {})).hasSize(1);
    }
  }

  @Test
  void find_mountWithTheNumberOfASessionThatEnded_isNotThatDaemon() throws Exception {
    Registry own = Registry.own(world.makeDirectory("run"));
    try (Registration registration = Objects.requireNonNull(own.register(MOUNTPOINT))) {
      registration.publish(
          DaemonRecord.of(MOUNTPOINT.toString(), "/source", 7, "/x", "/log")
              .withDevice("0:30")
              .withSessions(List.of("0:30", "0:31")));
      String another = TestMachine.line(SECOND, "fuse.pmfs", "/another");
      world.mountinfo(
          TestMachine.line(MOUNTPOINT, "fuse.pmfs", "/source"), another.replace("0:30", "0:31"));
      KnownMounts knownMounts = KnownMounts.open(world.surroundings());

      assertThat(knownMounts.find(SECOND)).isNull();
      assertThat(knownMounts.mounted())
          .extracting(DaemonRecord::mountpoint)
          .containsExactly(MOUNTPOINT.toString());
    }
  }

  /**
   * The kernel has a mount of a dead daemon, with a number that another daemon's record still
   * contains.
   */
  @Test
  void awaitAll_mountWithTheNumberOfASessionThatEnded_isMissed() throws Exception {
    kill();
    Registry own = Registry.own(world.makeDirectory("run"));
    try (Registration registration = Objects.requireNonNull(own.register(SECOND))) {
      registration.publish(
          DaemonRecord.of(SECOND.toString(), "/another", 7, "/x", "/log")
              .withDevice("0:31")
              .withSessions(List.of("0:30", "0:31")));
      List<MountFailure> missed = new ArrayList<>();

      assertThat(
              KnownMounts.open(world.surroundings(), line -> {}, Duration.ofMillis(200))
                  .awaitAll(missed::add))
          .hasSize(1);

      assertThat(missed).hasSize(1);
    }
  }

  private static MountTable.Mount mount(String device) {
    return new MountTable.Mount(SECOND, "fuse.pmfs", "/source", "ro", device, true, "7");
  }

  @Test
  void holder_isKnownWhileItsMountIsThere() throws Exception {
    Registry own = Registry.own(world.makeDirectory("run"));
    MountOwner holder =
        new MountOwner(SECOND.toString(), "0:30", "ada", 7, "42", "2026-11-25T09:00:00Z");
    own.hold(holder);
    world.mountinfo(TestMachine.line(SECOND, "fuse.pmfs", "/source"));
    KnownMounts knownMounts = KnownMounts.open(world.surroundings());

    knownMounts.sweepHolders();
    assertThat(knownMounts.holder(mount("0:30"))).isEqualTo(holder);
    assertThat(knownMounts.holder(mount("0:31"))).isNull();

    world.mountinfo();
    KnownMounts.open(world.surroundings()).sweepHolders();
    assertThat(knownMounts.holder(mount("0:30"))).isNull();
  }

  /** Only the mount itself counts, identified by its number, place and kind. */
  @Test
  void standIn_isKnownWhileItsMountIsThere() throws Exception {
    Registry own = Registry.own(world.makeDirectory("run"));
    String line = "77 20 8:1 /source " + SECOND + " ro,nosuid,nodev - ext4 /dev/sda1 rw";
    StandIn standIn =
        new StandIn(SECOND.toString(), "/source", "77", 6, "2026-11-25T09:00:00Z", "/log");
    own.standIn(standIn);
    world.mountinfo(line);
    KnownMounts knownMounts = KnownMounts.open(world.surroundings());

    assertThat(knownMounts.standIn(SECOND)).isEqualTo(standIn);
    assertThat(knownMounts.standIn(SECOND.resolve("a/b"))).isEqualTo(standIn);
    assertThat(knownMounts.standIn(MOUNTPOINT)).isNull();
    assertThat(knownMounts.notMounted(SECOND).line())
        .isEqualTo(
            SECOND
                + ": not served: its daemon died 6 times within a minute; the source itself is"
                + " mounted here instead, read-only, and no copies are used: see /log, then pmfs"
                + " umount /jobs/42 and mount again");
    knownMounts.sweepHolders();
    assertThat(knownMounts.standIns()).containsExactly(standIn);
    for (String other :
        List.of(
            line.replace("77 ", "78 "),
            line.replace(SECOND.toString(), MOUNTPOINT.toString()),
            line.replace("ro,", "rw,"),
            line.replace("ext4", "fuse.pmfs"))) {
      world.mountinfo(other);
      assertThat(KnownMounts.open(world.surroundings()).standIns()).as(other).isEmpty();
    }
    world.mountinfo(line, TestMachine.line(SECOND, "tmpfs", "above"));
    assertThat(KnownMounts.open(world.surroundings()).standIns()).as("covered").isEmpty();

    world.mountinfo();
    KnownMounts.open(world.surroundings()).sweepHolders();
    world.mountinfo(line);
    assertThat(KnownMounts.open(world.surroundings()).standIns()).as("swept").isEmpty();
  }

  /** A mount whose daemon died: the kernel still has it, and the daemon's files remain. */
  private void kill() throws Exception {
    kill(true);
  }

  private void kill(boolean isSupervised) throws Exception {
    Path directory = world.makeDirectory("run");
    Registration registration =
        Objects.requireNonNull(Registry.own(directory).register(MOUNTPOINT));
    registration.publish(
        new DaemonRecord(
            MOUNTPOINT.toString(), "/source", 1, "/x", "/log", "0:30", false, null, isSupervised));
    Path entry = Path.of(registration.socket().toString().replace(".sock", ".json"));
    byte[] left = Files.readAllBytes(entry);
    registration.close();
    Files.write(entry, left);
    world.mountinfo(TestMachine.line(MOUNTPOINT, "fuse.pmfs", "/source"));
  }

  @Test
  void awaitAll_noDaemonFollows_saysSoAndWhereToLook() throws Exception {
    kill();
    KnownMounts knownMounts =
        KnownMounts.open(world.surroundings(), line -> {}, Duration.ofMillis(200));
    List<MountFailure> missed = new ArrayList<>();

    assertThat(knownMounts.awaitAll(missed::add)).isEmpty();

    assertThat(missed)
        .singleElement()
        .satisfies(
            failure -> {
              assertThat(failure.exitStatus()).isEqualTo(ExitStatus.FAILED);
              assertThat(failure.line())
                  .isEqualTo(
                      MOUNTPOINT
                          + ": its daemon died, and the next one answers no commands yet; see"
                          + " /log");
            });
  }

  @Test
  void await_longerThanTwoSeconds_tellsOnceWhatFor() throws Exception {
    kill();
    List<String> notices = new ArrayList<>();

    assertThat(
            KnownMounts.open(world.surroundings(), notices::add, Duration.ofSeconds(3))
                .await(MOUNTPOINT))
        .isNull();

    assertThat(notices)
        .containsExactly(MOUNTPOINT + ": its daemon is being replaced; waiting for the next one");
  }

  /** No wait for a successor of a daemon that has none. */
  @Test
  void await_daemonOfAUsersMount_endsAtOnceAndSaysWhatIsTheCase() throws Exception {
    kill(false);
    List<String> notices = new ArrayList<>();
    KnownMounts knownMounts =
        KnownMounts.open(world.surroundings(), notices::add, Duration.ofMinutes(5));

    assertThat(knownMounts.await(MOUNTPOINT)).isNull();

    assertThat(notices).isEmpty();
    assertThat(knownMounts.absence(MOUNTPOINT).line())
        .isEqualTo(
            "%s: its daemon died, and a user's mount has no other; run pmfs umount %s; see /log"
                .formatted(MOUNTPOINT, MOUNTPOINT));
  }

  @Test
  void awaitSuccessor_ofAUsersDaemonThatDoesNotAnswer_saysNothingOfAReplacement() throws Exception {
    kill(false);
    List<String> notices = new ArrayList<>();
    DaemonRecord silent =
        new DaemonRecord(
            MOUNTPOINT.toString(), "/source", 1, "/x", "/log", "0:30", false, null, false);

    assertThat(
            KnownMounts.open(world.surroundings(), notices::add, Duration.ofMinutes(5))
                .awaitSuccessor(silent))
        .isNull();

    assertThat(notices).isEmpty();
  }

  /** Texts that a user can write instead of a record; the file name is valid. */
  static List<String> hostileRecords() {
    String other = "\"source\":\"/s\",\"socket\":\"/x\",\"logFile\":\"/l\",\"pid\":7";
    String place = "\"mountpoint\":\"" + MOUNTPOINT + "\"";
    String whole = place + "," + other;
    return List.of(
        "",
        "null",
        "7",
        "\"text\"",
        "[]",
        "{}",
        "{\"mountpoint\":null," + other + "}",
        "{\"mountpoint\":{}," + other + "}",
        "{\"mountpoint\":\"\\u0000\"," + other + "}",
        "{\"mountpoint\":\"relative\"," + other + "}",
        "{\"mountpoint\":\"/" + "x".repeat(5000) + "\"," + other + "}",
        "{" + place + "}",
        "{" + whole.replace("\"/s\"", "null") + "}",
        "{" + whole.replace("\"/l\"", "null") + "}",
        "{" + whole.replace("\"/l\"", "\"relative\"") + "}",
        "{" + whole.replace(":7", ":null") + "}",
        "{" + whole.replace(":7", ":0") + "}",
        "{" + whole.replace(":7", ":-1") + "}",
        "{" + whole.replace(":7", ":1e99999") + "}",
        "{" + whole.replace(":7", ":9223372036854775807") + "}",
        "{" + whole.replace(":7", ":" + "9".repeat(30_000)) + "}",
        "{" + whole + ",\"device\":\"x\"}",
        "{" + whole + ",\"device\":[\"0:1\"]}",
        "{" + whole + ",\"sessions\":[null]}",
        "{" + whole + ",\"sessions\":[\"0:1\",\"/\"]}",
        "{" + whole + ",\"sessions\":7}",
        "{" + whole + ",\"sessions\":[" + "\"0:1\",".repeat(5000) + "\"0:1\"]}",
        "{" + whole + ",\"x\":" + "[".repeat(30_000),
        "{" + whole + ",\"sessions\":" + "{\"a\":".repeat(5000),
        "{" + whole + ",\"x\":\"" + "x".repeat(70_000) + "\"}");
  }

  @ParameterizedTest
  @MethodSource("hostileRecords")
  void running_byRoot_hostileRecord_isOneLineAndOthersAreShown(String text) throws Exception {
    Path ofEve = world.makeDirectory("run-4712");
    List<String> lines = new ArrayList<>();
    try (Registration bad = serve(ofEve, "/x");
        Registration good = serve(ofAda, "/x")) {
      Path record = Path.of(bad.socket().toString().replace(".sock", ".json"));
      Files.writeString(record, text);
      giveAll(ofEve, 4712);

      assertThat(KnownMounts.open(world.surroundings(), lines::add).running())
          .extracting(DaemonRecord::socket)
          .containsExactly(good.socket().toString());
      assertThat(lines)
          .singleElement()
          .asString()
          .startsWith(ofEve + ": user 4712: " + record.getFileName() + ": ");
    }
  }

  @Test
  void running_byRoot_noPlainFile_isOneLineAndOthersAreShown() throws Exception {
    Path ofEve = world.makeDirectory("run-4712");
    Path secret = Files.writeString(world.root.resolve("secret"), "{}");
    for (List<String> command :
        List.of(
            List.of("mkfifo"),
            List.of("ln", "-s", secret.toString()),
            List.of("ln", secret.toString()),
            List.of("mkdir"),
            List.of("cp", "-a", "/dev/zero"))) {
      List<String> lines = new ArrayList<>();
      try (Registration bad = serve(ofEve, "/x");
          Registration good = serve(ofAda, "/x")) {
        Path record = Path.of(bad.socket().toString().replace(".sock", ".json"));
        Files.delete(record);
        List<String> words = new ArrayList<>(command);
        words.add(record.toString());
        assertThat(new ProcessBuilder(words).inheritIO().start().waitFor()).isZero();
        giveAll(ofEve, 4712);

        assertThat(KnownMounts.open(world.surroundings(), lines::add).running())
            .extracting(DaemonRecord::socket)
            .containsExactly(good.socket().toString());
        assertThat(lines).as("%s", command).hasSize(1);
        Files.setAttribute(secret, "unix:uid", 0);
      }
    }
  }

  @Test
  void running_byRoot_thousandRecordsOfOneUser_showsSomeAndALine() throws Exception {
    List<Registration> many = new ArrayList<>();
    List<String> lines = new ArrayList<>();
    Path ofEve = world.makeDirectory("run-4712");
    try (Registration good = serve(ofEve, "/x")) {
      give(ofEve, 4712);
      giveAll(ofEve, 4712);
      for (int i = 0; i < 1000; i++) {
        Path place = Path.of("/mnt/" + i);
        Registration one = Objects.requireNonNull(Registry.own(ofAda).register(place));
        many.add(one);
        Files.createFile(one.socket());
        one.publish(DaemonRecord.of(place.toString(), "/source", 1, "/x", "/log"));
      }
      giveAll(ofAda);
      List<DaemonRecord> running = KnownMounts.open(world.surroundings(), lines::add).running();

      assertThat(running)
          .hasSize(StrangersRecords.MOST_MOUNTS + 1)
          .anyMatch(entry -> entry.socket().equals(good.socket().toString()));
      assertThat(lines).singleElement().asString().startsWith(ofAda + ": user 4711: more than 64");
    } finally {
      many.forEach(Registration::close);
    }
  }

  @Test
  void find_byRoot_strangersRecordOfAnothersMount_isNotBelieved() throws Exception {
    world.mountinfo(
        TestMachine.line(MOUNTPOINT, "fuse.pmfs", "/source").replace(" ro", " ro,user_id=4712"));
    try (Registration forged = serve(ofAda, "/x")) {
      assertThat(find()).isNull();
      world.mountinfo(
          TestMachine.line(MOUNTPOINT, "fuse.pmfs", "/source").replace(" ro", " ro,user_id=4711"));
      assertThat(Objects.requireNonNull(find()).socket()).isEqualTo(forged.socket().toString());
    }
  }

  @Test
  void holder_byRoot_hostileRecord_isNone() throws Exception {
    world.mountinfo(
        TestMachine.line(MOUNTPOINT, "fuse.pmfs", "/source").replace(" ro", " ro,user_id=4711"));
    MountTable.Mount mount = Objects.requireNonNull(world.surroundings().mounts().at(MOUNTPOINT));
    Path record = ofAda.resolve(Registry.nameOf(MOUNTPOINT) + ".holder");
    String whole =
        "{\"mountpoint\":\"%s\",\"device\":\"0:30\",\"user\":\"ada\",\"pid\":7,\"since\":\"x\"}"
            .formatted(MOUNTPOINT);
    for (String text :
        List.of("{}", "null", whole.replace("\"ada\"", "null"), whole.replace("7", "-7"))) {
      Files.writeString(record, text);
      give(record);
      assertThat(KnownMounts.open(world.surroundings()).holder(mount)).as(text).isNull();
    }
    Files.writeString(record, whole);
    give(record);
    assertThat(KnownMounts.open(world.surroundings()).holder(mount)).isNotNull();
  }
}
