package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A mount whose daemon is replaced: the next one goes on with the same source and settings, and
 * without the source if that is away.
 */
final class SessionIT {
  private static final Duration LIFETIME = Duration.ofMinutes(3);
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final int FILES = 40;

  @Installed(byRoot = true)
  private Installation pmfs;

  private Dataset dataset;

  @BeforeEach
  void makeSource() {
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(FILES, 50_000));
  }

  private Path source() {
    return dataset.root();
  }

  private Path aside() {
    return source().resolveSibling("aside");
  }

  /** Another dataset with the same names and sizes. */
  private Path makeOther(Path root) throws IOException {
    for (Dataset.Item item : dataset.items()) {
      Path file = root.resolve(item.name());
      Files.createDirectories(file.getParent());
      Files.write(file, new byte[item.size()]);
    }
    return root;
  }

  private Dataset.Item unread() {
    return dataset.items().get(FILES - 1);
  }

  /** Copies all files but the last of each ten, whose names become known. */
  private void stageAllButUnread(MountedPmfs mount) {
    for (Dataset.Item item : dataset.items()) {
      if (item.equals(unread())) {
        assertThat(mount.mountpoint().resolve(item.name())).hasSize(item.size());
      } else {
        Dataset.assertEqualBelow(mount.mountpoint(), item);
      }
    }
    mount.awaitCopies(FILES - 1);
  }

  /** Makes the kernel forget what it has of the files. */
  private void forgetCached(MountedPmfs mount) {
    for (Dataset.Item item : dataset.items()) {
      Posix.check(Posix.forgetData(mount.path(item.name())));
    }
  }

  /** Reads what was staged, and not what the kernel has of it. */
  private void assertStagedIsServed(MountedPmfs mount) {
    forgetCached(mount);
    long before = mount.status().number("reads.requests");
    for (Dataset.Item item : dataset.items()) {
      if (!item.equals(unread())) {
        Dataset.assertEqualBelow(mount.mountpoint(), item);
      }
    }
    assertThat(mount.status().number("reads.requests") - before)
        .as("reads that the daemon answered")
        .isGreaterThanOrEqualTo(FILES - 1);
  }

  private Command readUnread(MountedPmfs mount) {
    return Command.run("cat", mount.path(unread().name()));
  }

  private void awaitUnreadIsServed(MountedPmfs mount) {
    Await.until("the source again", SOON, () -> readUnread(mount).exit() == 0);
    Dataset.assertEqualBelow(mount.mountpoint(), unread());
    assertThat(mount.status().text("sourceAbsence")).isEmpty();
  }

  private static long replace(MountedPmfs mount) {
    long pid = mount.daemon();
    mount.killDaemon();
    return mount.awaitSuccessor(pid);
  }

  private MountedPmfs mountByFile(Path file, String sourceText) throws IOException {
    writeConfiguration(file, sourceText, pmfs.tier());
    Command mounted = pmfs.run("mount", "--config", file.toString(), pmfs.mountpoint().toString());
    mounted.expect(0);
    return new MountedPmfs(pmfs, source(), pmfs.mountpoint(), LIFETIME, mounted.out());
  }

  private void writeConfiguration(Path file, String sourceText, Path tier) throws IOException {
    Files.writeString(
        file,
        """
        keep-free = "0"
        [mount."%s"]
        source = "%s"
        tier = ["ssd:%s"]
        """
            .formatted(pmfs.mountpoint(), sourceText, tier));
  }

  /** What counts for a mount, and where that is from. */
  private String configurationOf(MountedPmfs mount) {
    String socket = pmfs.controlSocket(mount.mountpoint()).toString();
    return Command.run("curl", "-sSf", "--unix-socket", socket, "http://pmfs/configuration")
        .expect(0)
        .out();
  }

  @ParameterizedTest
  @ValueSource(strings = {"edited", "broken", "deleted"})
  @OnRequest("cases")
  void configurationFile_changedMeanwhile_isNotTheSessions(String how) throws IOException {
    Requested.assume("cases", how.equals("edited"), "");
    Path other = makeOther(pmfs.directory("other"));
    Path file = pmfs.directory("home").resolve("pmfs.toml");
    try (MountedPmfs mount = mountByFile(file, source().toString())) {
      Dataset.assertEqualBelow(mount.mountpoint(), dataset.items().get(0));
      switch (how) {
        case "edited" -> writeConfiguration(file, other.toString(), pmfs.directory("other-tier"));
        case "broken" -> Files.writeString(file, "source = [");
        default -> Files.delete(file);
      }
      replace(mount);
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().text("source")).isEqualTo(source().toString());
      assertThat(mount.status().text("tiers.0.path")).startsWith(pmfs.tier().toString());
      assertThat(configurationOf(mount)).contains(source().toString(), file + ":3");
      pmfs.run("upgrade", mount.mountpoint().toString()).expect(0);
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().text("source")).isEqualTo(source().toString());
    }
    assertThat(Installation.files(pmfs.directory("run")))
        .as("what a session leaves")
        .noneMatch(left -> left.getFileName().toString().startsWith("session."));
  }

  /** The mounting command ends when any daemon of the mount reports that it is ready. */
  @Test
  void daemon_thatDiesBeforeItIsReady_isReplacedAndTheCommandEnds() throws Exception {
    pmfs.environment("PMFS_JAVA_OPTIONS", "-Xint"); // Between mounting and being ready it is slow.
    Process command = startMount();
    Optional<ProcessHandle> daemon = daemonOf(command);
    for (int again = 0; daemon.isEmpty() && again < 20; again++) {
      awaitEnd(command); // It was ready before this test found it.
      pmfs.run("umount", pmfs.mountpoint().toString()).expect(0);
      command = startMount();
      daemon = daemonOf(command);
    }
    assertThat(daemon).as("a daemon that is not ready").isPresent();
    long first = daemon.get().pid();
    daemon.get().destroyForcibly();

    awaitEnd(command);
    assertThat(command.exitValue()).isZero();
    dataset.assertEqualBelow(pmfs.mountpoint());
    Status status =
        Status.parse(pmfs.run("status", "--json", pmfs.mountpoint().toString()).expect(0).out());
    assertThat(status.number("pid")).isNotEqualTo(first);
    pmfs.run("umount", pmfs.mountpoint().toString()).expect(0);
  }

  /** Begins to mount, and returns when the daemon has mounted. */
  private Process startMount() throws InterruptedException {
    Process command =
        pmfs.start(
            ProcessBuilder.Redirect.DISCARD,
            pmfs.mountArguments(dataset.root(), pmfs.mountpoint()));
    Path sessions = pmfs.scratch().root().resolve("run");
    while (!hasBegun(sessions) && command.isAlive()) {
      Thread.sleep(1); // Longer, and the daemon would be ready.
    }
    return command;
  }

  private static Optional<ProcessHandle> daemonOf(Process command) {
    return command
        .descendants()
        .filter(process -> process.info().command().orElse("").endsWith("java"))
        .findFirst();
  }

  private static void awaitEnd(Process command) {
    Await.until("the command has ended", Duration.ofMinutes(1), () -> !command.isAlive());
  }

  private static boolean hasBegun(Path directory) {
    return Installation.files(directory).stream()
        .anyMatch(
            file ->
                file.getFileName().toString().matches("session\\.[A-Za-z0-9]{8}")
                    && file.toFile().length() > 0);
  }

  /** Loaders on all processors must not wait for Java's second compiler. */
  @Test
  @OnRequest("cases")
  void optimizer_ofADaemonAndItsSuccessor_getsWhatOthersLeave() throws IOException {
    pmfs.environment("PMFS_JAVA_OPTIONS", "");
    try (MountedPmfs mount = pmfs.mount(source())) {
      assertOnlyOptimizerIsNice(mount.status().number("pid"));
      pmfs.run("upgrade", mount.mountpoint().toString()).expect(0);
      assertOnlyOptimizerIsNice(mount.status().number("pid"));
    }
  }

  private static void assertOnlyOptimizerIsNice(long pid) throws IOException {
    List<Path> threads;
    try (Stream<Path> found = Files.list(Path.of("/proc/" + pid + "/task"))) {
      threads = found.toList();
    }
    for (Path thread : threads) {
      String name = Files.readString(thread.resolve("comm")).strip();
      // proc_pid_stat(5): the 19th field, the 17th after the name in parentheses.
      String stat = Files.readString(thread.resolve("stat"));
      int nice = Integer.parseInt(stat.substring(stat.lastIndexOf(')') + 2).split(" ", -1)[16]);
      if (name.startsWith("C2 Compiler")) {
        assertThat(nice).as(name).isEqualTo(19);
      } else if (name.startsWith("fuse-") || name.startsWith("C1 Compiler")) {
        assertThat(nice).as(name).isZero();
      }
    }
    assertThat(threads.stream().map(SessionIT::nameOf))
        .anyMatch(name -> name.startsWith("C2 Compiler"))
        .anyMatch(name -> name.startsWith("fuse-"));
  }

  private static String nameOf(Path thread) {
    try {
      return Files.readString(thread.resolve("comm"));
    } catch (IOException e) {
      return "ended";
    }
  }

  @Test
  void settings_ofTheSession_areClosedToOthers() throws IOException {
    try (MountedPmfs mount = pmfs.mount(LIFETIME, source())) {
      Path kept =
          Installation.files(pmfs.directory("run")).stream()
              .filter(file -> file.toString().endsWith(".settings"))
              .findFirst()
              .orElseThrow();
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(kept)))
          .isEqualTo("rw-------");
      assertThat(Files.readString(kept, UTF_8)).contains(mount.source().toString());
    }
  }

  /** As of a session that an older pmfs began. */
  @Test
  @OnRequest("cases")
  void successor_withoutTheSessionsSettings_goesOnByItsCommandLine() throws IOException {
    try (MountedPmfs mount = pmfs.mount(LIFETIME, source())) {
      stageAllButUnread(mount);
      try (DirectoryStream<Path> kept =
          Files.newDirectoryStream(pmfs.directory("run"), "session.*.settings")) {
        for (Path settings : kept) {
          Files.delete(settings);
        }
      }
      replace(mount);
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().text("source")).isEqualTo(source().toString());
      assertThat(mount.status().number("tiers.0.copies")).isGreaterThanOrEqualTo(FILES - 1);
      replace(mount);
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  /** A command that comes while there is no daemon is answered by the next one. */
  @Test
  @OnRequest("cases")
  void commands_whileTheDaemonIsReplaced_waitForTheNext() {
    try (MountedPmfs mount = pmfs.mount(LIFETIME, source())) {
      String place = mount.mountpoint().toString();
      List<List<String>> commands =
          List.of(
              List.of("status", place),
              List.of("stage", place),
              List.of("stage", "--check", place));
      for (List<String> command : commands) {
        mount.killDaemon();
        pmfs.run(command.toArray(String[]::new)).expect(0);
      }
      mount.killDaemon();
      assertThat(pmfs.run("status").expect(0).out()).contains(place);
    }
  }

  @Test
  void linkToTheSource_movedMeanwhile_isNotFollowedAgain() throws IOException {
    Path other = makeOther(pmfs.directory("other"));
    Path link = source().resolveSibling("link");
    Files.createSymbolicLink(link, source());
    Path file = pmfs.directory("home").resolve("pmfs.toml");
    try (MountedPmfs mount = mountByFile(file, link.toString())) {
      Dataset.assertEqualBelow(mount.mountpoint(), dataset.items().get(0));
      Files.delete(link);
      Files.createSymbolicLink(link, other);
      replace(mount);
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  @Test
  void source_replacedByAnother_isNotServed() throws IOException {
    try (MountedPmfs mount = pmfs.mount(LIFETIME, source())) {
      stageAllButUnread(mount);
      Files.move(source(), aside());
      makeOther(source());

      long pid = mount.daemon();
      Command upgrade = pmfs.run("upgrade", mount.mountpoint().toString());
      assertThat(upgrade.exit()).isEqualTo(1);
      assertThat(upgrade.err())
          .contains("not upgraded: " + source() + " is not the directory that was mounted");
      assertThat(mount.daemon()).isEqualTo(pid);

      replace(mount);
      assertStagedIsServed(mount);
      assertThat(readUnread(mount).err()).contains("Input/output error");
      assertThat(mount.status().text("sourceAbsence"))
          .contains("not the directory that was mounted");
      assertThat(pmfs.run("status", mount.mountpoint().toString()).out())
          .contains("not the directory that was mounted");

      Files.move(source(), source().resolveSibling("other"));
      Files.move(aside(), source(), StandardCopyOption.ATOMIC_MOVE);
      awaitUnreadIsServed(mount);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"kill -9", "upgrade"})
  @OnRequest("cases")
  void source_absentWhileTheDaemonIsReplaced_mountServesOn(String how) throws Exception {
    Requested.assume("cases", how.equals("kill -9"), "");
    try (MountedPmfs mount = pmfs.mount(LIFETIME, source())) {
      stageAllButUnread(mount);
      Files.move(source(), aside());
      if (how.equals("upgrade")) {
        pmfs.run("upgrade", mount.mountpoint().toString()).expect(0);
      } else {
        replace(mount);
      }
      // It was once given up after 11 s. One of the two looks so long: they do the same by then.
      long end = System.nanoTime() + Duration.ofSeconds(how.equals("upgrade") ? 2 : 15).toNanos();
      do {
        assertStagedIsServed(mount);
        assertThat(Command.run("ls", "-lR", mount.mountpoint().toString()).expect(0).out())
            .contains(unread().name().substring(unread().name().indexOf('/') + 1));
        Thread.sleep(500);
      } while (System.nanoTime() < end);
      assertThat(readUnread(mount).err()).contains("Input/output error");
      assertThat(mount.status().text("sourceAbsence")).contains(source().toString());
      // Again, without a source in between.
      replace(mount);
      assertStagedIsServed(mount);

      Files.move(aside(), source());
      awaitUnreadIsServed(mount);
      String log = Files.readString(Path.of(mount.status().text("logFile")));
      assertThat(log).contains("is unavailable: ").contains("source: is available again");
    }
  }

  @Test
  void source_thatHangs_doesNotKeepTheSuccessorFromAnswering() throws Exception {
    try (MountedPmfs mount = pmfs.mount(LIFETIME, source())) {
      stageAllButUnread(mount);
      Files.move(source(), aside());
      Files.createDirectory(source());
      // A file system that never answers, until the process that holds it ends.
      Process silent =
          new ProcessBuilder(
                  "bash",
                  "-c",
                  "exec 3<>/dev/fuse; mount -i -t fuse"
                      + " -o fd=3,rootmode=40000,user_id=0,group_id=0 silent \"$1\" &&"
                      + " exec sleep 300",
                  "-",
                  source().toString())
              .start();
      try {
        Await.until("a silent source", SOON, () -> Mounts.at(source()));
        replace(mount);
        assertStagedIsServed(mount);
        assertThat(mount.status().text("sourceAbsence")).isEqualTo("it has not answered yet");
        Process reader =
            new ProcessBuilder("cat", mount.path(unread().name()))
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        Await.until("a reader that waits", SOON, () -> mount.status().number("waiting.count") > 0);
        assertStagedIsServed(mount);
        assertThat(reader.isAlive()).isTrue();
        silent.destroyForcibly().waitFor();
        assertThat(reader.waitFor()).isNotZero();
      } finally {
        silent.destroyForcibly().waitFor();
        Command.run("umount", "-l", source().toString());
      }
      Files.delete(source());
      Files.move(aside(), source());
      awaitUnreadIsServed(mount);
    }
  }

  @Test
  @OnRequest("cases")
  void tarFiles_absentWhileTheDaemonIsReplaced_mountServesOn() throws Exception {
    Path tars = pmfs.directory("tars");
    for (String part : List.of("part-000", "part-001", "part-002", "part-003")) {
      Command.run(
              "tar",
              "-C",
              source().toString(),
              "-cf",
              tars.resolve(part + ".tar").toString(),
              "--transform",
              "s|" + part + "/||",
              part)
          .expect(0);
    }
    try (MountedPmfs mount = pmfs.mount(LIFETIME, tars, "--source-form", "tar")) {
      stageAllButUnread(mount);
      Path elsewhere = tars.resolveSibling("elsewhere");
      Files.move(tars, elsewhere);
      replace(mount);
      assertStagedIsServed(mount);
      assertThat(readUnread(mount).exit()).isNotZero();
      // The session continues with the tar files, whatever lies beside them now.
      Files.writeString(elsewhere.resolve("README"), "text");
      Files.move(elsewhere, tars);
      awaitUnreadIsServed(mount);
    }
  }

  @Test
  void successor_ofAStagedMount_asksTheSourceForNothing() {
    try (MountedPmfs mount = pmfs.mount(LIFETIME, source())) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(FILES);
      replace(mount);
      Command.run("find", mount.mountpoint().toString(), "-ls").expect(0);
      forgetCached(mount);
      dataset.assertEqualBelow(mount.mountpoint());
      // find(1) asks for the file system's size, which is not kept.
      Status status = mount.status();
      assertThat(status.number("sourceOperations.statfs")).isLessThanOrEqualTo(1);
      assertThat(status.number("sourceOperations.total"))
          .isEqualTo(status.number("sourceOperations.statfs"));
      assertThat(mount.status().number("staging.verified"))
          .as("copies are verified at their first use")
          .isPositive();
    }
  }

  @Test
  void tier_missingWhenTheDaemonIsReplaced_sourceIsRead() throws IOException {
    Path tier = pmfs.directory("lost");
    Path first = tier.resolve("tier");
    try (MountedPmfs mount = pmfs.mount(LIFETIME, source(), "--tier", "ssd:" + first)) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(FILES);
      Files.move(first, tier.resolve("gone"));
      Files.writeString(first, "no directory");
      replace(mount);
      assertThat(mount.status().text("tiers.0.state")).isEqualTo("failed");
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }
}
