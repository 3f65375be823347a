package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.it.Dataset.Item;
import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tiers that are filled, compared and emptied by command. */
final class StageIT {
  private static final int COUNT = 40;
  private static final int SIZE = 100_000;
  private static final Duration PATIENCE = Duration.ofSeconds(90);

  /** Takes ten seconds for the whole dataset, so that a command can come in the middle. */
  private static final String[] SLOWLY = {"--max-rate", "400K", "--jobs", "1"};

  /** Takes four seconds, so that there is a middle. */
  private static final String[] LESS_SLOWLY = {"--max-rate", "1M", "--jobs", "1"};

  @Installed private Installation pmfs;
  private Dataset dataset;

  @BeforeEach
  void makeSource() {
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(COUNT, SIZE));
  }

  private MountedPmfs mount(String... options) {
    return pmfs.mount(dataset.root(), options);
  }

  private Command stage(MountedPmfs mount, String... options) {
    return pmfs.run(arguments(mount, options));
  }

  private static String[] arguments(MountedPmfs mount, String... options) {
    String[] all = new String[options.length + 2];
    all[0] = "stage";
    System.arraycopy(options, 0, all, 1, options.length);
    all[all.length - 1] = mount.mountpoint().toString();
    return all;
  }

  /** Starts a command that goes on meanwhile; its process is Java's, as the launcher becomes it. */
  private Process start(MountedPmfs mount, String... options) {
    return pmfs.start(ProcessBuilder.Redirect.to(output().toFile()), arguments(mount, options));
  }

  private Path output() {
    return pmfs.scratch().root().resolve("stage.out");
  }

  /** Looks at the tier, as a status takes its time on a busy machine. */
  private void awaitMiddle() {
    Await.until("some files staged", PATIENCE, () -> bytesInTier() >= 4L * SIZE);
  }

  private long bytesInTier() {
    return pmfs.copies().stream().mapToLong(file -> file.toFile().length()).sum();
  }

  private static int awaitExit(Process process) {
    Await.until("the command ended", PATIENCE, () -> !process.isAlive());
    return process.exitValue();
  }

  private List<Item> part(int number) {
    return dataset.items().subList(number * 10, number * 10 + 10);
  }

  private void assertReadWithoutTheSource(MountedPmfs mount, List<Item> items) {
    Status before = mount.status();
    items.forEach(item -> Dataset.assertEqualBelow(mount.mountpoint(), item));
    Status after = mount.status();
    assertThat(after.number("sourceOperations.reads"))
        .as("%s", after)
        .isEqualTo(before.number("sourceOperations.reads"));
    assertThat(after.number("sourceOperations.opens"))
        .isEqualTo(before.number("sourceOperations.opens"));
  }

  @Test
  void stage_wholeDataset_thenEveryByteIsReadWithoutTheSource() {
    try (MountedPmfs mount = mount()) {
      assertThat(stage(mount).expect(0).out()).contains("staged 40 files; 40 files of 3.8 MiB");
      assertThat(mount.status().number("sourceOperations.bytes")).isEqualTo(dataset.bytes());
      assertReadWithoutTheSource(mount, dataset.items());
      assertThat(stage(mount).expect(0).out()).contains("40 files already there");
      assertThat(mount.status().number("sourceOperations.bytes")).isEqualTo(dataset.bytes());
    }
  }

  @Test
  @OnRequest("cases")
  void stage_partsByMountAndSource_areThoseAndNoOthers() {
    try (MountedPmfs mount = mount()) {
      pmfs.run("stage", mount.path("part-001"), dataset.root() + "/part-002/").expect(0);

      assertThat(mount.status().number("tiers.0.copies")).isEqualTo(20);
      assertReadWithoutTheSource(mount, part(1));
      assertReadWithoutTheSource(mount, part(2));
    }
  }

  @Test
  void stage_list_namesWhatIsMissing() {
    String absolute = dataset.root() + "/" + dataset.items().get(1).name();
    Path list =
        write(
            "list", dataset.items().get(0).name() + "\r\n\n" + absolute + "\npart-003\nno/such\n");
    Path report = pmfs.scratch().root().resolve("report");
    try (MountedPmfs mount = mount()) {
      Command staged =
          stage(mount, "--list", list.toString(), "--report", report.toString()).expect(4);

      assertThat(staged.out()).contains("staged 12 files, 1 file failed");
      assertThat(staged.errorLines())
          .containsExactly("pmfs: no/such: line 5: there is no such path");
      assertThat(lines(report))
          .containsExactly(
              "{\"path\":\"no/such\",\"outcome\":\"not-found\",\"reason\":\"line 5: there is no"
                  + " such path\"}");
    }
  }

  @Test
  @OnRequest("cases")
  void stage_namesThatAreNoUtf8_areStaged() throws Exception {
    String name = "x\u00ff\u0080 %";
    Command.run("sh", "-c", "printf hello >\"$(printf '" + dataset.root() + "/x\\377\\200 %%')\"")
        .expect(0);
    Path list = pmfs.scratch().root().resolve("list");
    Files.write(list, (name + "\n").getBytes(java.nio.charset.StandardCharsets.ISO_8859_1));
    try (MountedPmfs mount = mount()) {
      stage(mount, "--list", list.toString()).expect(0);
      Command byArgument =
          Command.run(
              "sh",
              "-c",
              "PMFS_RUNTIME_DIR=%s exec %s stage --check \"$(printf '%s/x\\377\\200 %%%%')\""
                  .formatted(
                      pmfs.scratch().root().resolve("run"),
                      Installation.launcherOfCheckout(),
                      mount.mountpoint()));

      assertThat(byArgument.expect(0).out()).contains("1 file in the tiers");
    }
  }

  @Test
  void check_beforeAfterAndAfterAChange_saysWhatIsThere() {
    try (MountedPmfs mount = mount()) {
      Command missing = stage(mount, "--check").expect(4);
      assertThat(missing.out()).contains("40 files missing or stale");
      assertThat(missing.err()).contains(": there is no copy").doesNotContain("changed");
      stage(mount).expect(0);
      assertThat(stage(mount, "--check").expect(0).out()).contains("40 files in the tiers");
    }
    Item changed = dataset.items().get(7);
    write("source/" + changed.name(), "changed");
    try (MountedPmfs mount = mount()) {
      Command outdated = stage(mount, "--check").expect(4);
      assertThat(outdated.out()).contains("39 files in the tiers, 1 file missing or stale");
      assertThat(outdated.err())
          .startsWith("pmfs: " + changed.name() + ": the file changed since it was copied");
      assertThat(stage(mount).expect(0).out()).contains("staged 1 file, 39 files already there");
    }
  }

  /** As scratch purgers do: bundles, and a file that the daemon has open. */
  @ParameterizedTest
  @ValueSource(strings = {"none", "zstd"})
  void check_copiesTakenAwayWhileMounted_saysSoAndStageCopiesThem(String compression)
      throws Exception {
    Requested.assume("cases", compression.equals("none"), "");
    Path large = write("source/large", "x".repeat(3 << 20));
    try (MountedPmfs mount = mount("--compression", compression)) {
      stage(mount).expect(0);
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(stage(mount, "--check").expect(0).out()).contains("41 files in the tiers");
      for (Path file : Installation.files(pmfs.tier())) {
        if (file.toString().matches(".*/(copies|bundles)/.*")) {
          Files.delete(file);
        }
      }

      assertThat(stage(mount, "--check").expect(4).out()).contains("41 files missing or stale");
      assertThat(mount.status().number("tiers.0.copies")).isZero();
      assertThat(mount.status().number("tiers.0.usedBytes")).isZero();
      assertThat(stage(mount).expect(0).out()).contains("staged 41 files");
      assertThat(stage(mount, "--check", "--deep").expect(0).out())
          .contains("41 files in the tiers");
      assertReadWithoutTheSource(mount, dataset.items());
      assertThat(Files.readAllBytes(mount.mountpoint().resolve("large")))
          .isEqualTo(Files.readAllBytes(large));
    }
  }

  @Test
  @OnRequest("cases")
  void check_tierEmptiedBetweenMounts_saysSoAndStageCopiesAll() throws Exception {
    try (MountedPmfs mount = mount()) {
      stage(mount).expect(0);
    }
    for (Path file : Installation.files(pmfs.tier())) {
      Files.delete(file);
    }
    try (MountedPmfs mount = mount()) {
      assertThat(mount.status().number("tiers.0.usedBytes")).isZero();
      assertThat(stage(mount, "--check").expect(4).out()).contains("40 files missing or stale");
      assertThat(stage(mount).expect(0).out()).contains("staged 40 files");
      assertReadWithoutTheSource(mount, dataset.items());
    }
  }

  @Test
  void check_damagedCopy_isFoundByDeep() {
    try (MountedPmfs mount = mount()) {
      stage(mount).expect(0);
      Item damaged = dataset.items().get(13);
      Dataset.Copy copy = Dataset.copyOf(damaged, pmfs.tier());
      Faults.flipByte(copy.file(), copy.offset() + SIZE - 1);

      assertThat(stage(mount, "--check").expect(0).out()).contains("40 files in the tiers");
      Command deep = stage(mount, "--check", "--deep").expect(4);
      assertThat(deep.out()).contains("39 files in the tiers, 1 file missing or stale");
      assertThat(deep.err()).startsWith("pmfs: " + damaged.name() + ": ").contains("checksum");
      assertThat(stage(mount).expect(0).out()).contains("staged 1 file, 39 files already there");
    }
  }

  @Test
  @OnRequest("cases")
  void verify_afterATierLeftTheConfiguration_findsNothingBad() {
    Path second = pmfs.directory("second");
    try (MountedPmfs mount = mount("--tier", "ssd:" + pmfs.tier(), "--tier", "ssd:" + second)) {
      stage(mount).expect(0);
    }
    try (MountedPmfs mount = mount("--tier", "ssd:" + second)) {
      String mountpoint = mount.mountpoint().toString();
      assertThat(pmfs.run("verify", "--repair", mountpoint).expect(0).out())
          .contains("40 files without a copy");
      assertThat(stage(mount, "--check").expect(4).out()).contains("40 files missing or stale");
      assertThat(stage(mount).expect(0).out()).contains("staged 40 files");
      assertThat(pmfs.run("verify", mountpoint).expect(0).out()).contains("verified 40 files");
      assertReadWithoutTheSource(mount, dataset.items());
    }
    // The tier is back, and its records are still those of its copies.
    try (MountedPmfs mount = mount("--tier", "ssd:" + pmfs.tier(), "--tier", "ssd:" + second)) {
      assertThat(stage(mount, "--check", "--deep").expect(0).out())
          .contains("40 files in the tiers");
      assertThat(mount.status().number("tiers.0.copies")).isEqualTo(40);
      assertThat(mount.status().number("tiers.1.copies")).isEqualTo(40);
    }
  }

  @Test
  @OnRequest("cases")
  void tier_madeAnewUnderTheDaemon_isTurnedOffAndNothingIsWrittenThere() throws Exception {
    try (MountedPmfs mount = mount()) {
      pmfs.run("stage", mount.path("part-001")).expect(0);
      Path own = parent(parent(Dataset.copyOf(part(1).get(0), pmfs.tier()).file()));
      Files.move(own, pmfs.scratch().root().resolve("aside"));
      Files.createDirectory(own);

      Command staged = stage(mount).expect(4);
      assertThat(staged.err()).contains("not the same directory");
      assertThat(mount.status().text("tiers.0.state")).isEqualTo("failed");
      assertThat(Installation.files(own)).isEmpty();
      assertThat(stage(mount, "--check").expect(4).out()).contains("40 files missing or stale");
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  @Test
  void stage_interrupted_sumsUpAndASecondRunCopiesNothingTwice() {
    try (MountedPmfs mount = mount()) {
      Process first = start(mount, SLOWLY);
      awaitMiddle();
      Command.run("kill", "-INT", Long.toString(first.pid())).expect(0);

      assertThat(awaitExit(first)).isEqualTo(130);
      assertThat(lines(output())).hasSize(1).first().asString().contains("was cancelled: staged ");
      long copies = mount.awaitStagingIdle().number("tiers.0.copies");
      assertThat(copies).isBetween(3L, COUNT - 1L);
      stage(mount).expect(0);
      // What was being read when it was stopped may be read once more.
      assertThat(mount.status().number("sourceOperations.bytes"))
          .isBetween(dataset.bytes(), dataset.bytes() + SIZE);
      assertReadWithoutTheSource(mount, dataset.items());
    }
  }

  @Test
  void stage_daemonKilled_isGoneOnWithAndTheClientEndsWell() {
    Machine.requireRoot();
    try (MountedPmfs mount = mount()) {
      Process client = start(mount, LESS_SLOWLY);
      awaitMiddle();
      Command.run("kill", "-KILL", Long.toString(mount.daemon())).expect(0);

      assertThat(awaitExit(client)).isZero();
      assertThat(lines(output())).first().asString().contains("already there");
      assertReadWithoutTheSource(mount, dataset.items());
    }
  }

  @Test
  @OnRequest("cases")
  void stage_daemonUpgraded_isGoneOnWith() {
    Machine.requireRoot();
    try (MountedPmfs mount = mount()) {
      Process client = start(mount, SLOWLY);
      awaitMiddle();
      pmfs.run("upgrade", mount.mountpoint().toString()).expect(0);

      assertThat(awaitExit(client)).isZero();
      assertThat(lines(output())).first().asString().contains("already there");
    }
  }

  @Test
  void stage_unmountedMeanwhile_endsAndIsNotGoneOnWith() {
    MountedPmfs mount = mount();
    Process client = start(mount, SLOWLY);
    awaitMiddle();
    mount.close();

    assertThat(awaitExit(client)).isEqualTo(1);
    try (MountedPmfs again = mount()) {
      assertThat(again.status().text("task")).isEmpty();
      assertThat(again.status().number("tiers.0.copies")).isBetween(3L, COUNT - 1L);
    }
  }

  @Test
  @OnRequest("cases")
  void background_running_isShownRefusesAnotherAndIsWaitedFor() {
    try (MountedPmfs mount = mount()) {
      String[] options = {"--background", "--max-rate", "400K", "--jobs", "1"};
      assertThat(stage(mount, options).expect(0).out()).contains("staging in the background");
      assertThat(mount.status().text("task.state")).isEqualTo("running");
      assertThat(stage(mount).expect(1).errorLines())
          .containsExactly("pmfs: staging is running; --wait waits for it");
      assertThat(stage(mount, "--wait").expect(0).out()).contains("staged 40 files");
      assertThat(pmfs.run("status", mount.mountpoint().toString()).out())
          .contains("last task    staged 40 files");
    }
  }

  @Test
  void stage_tierWithoutRoom_saysWhichFilesAreNotThere() {
    Path report = pmfs.scratch().root().resolve("report");
    try (MountedPmfs mount = mount("--tier", "ssd:" + pmfs.tier() + ":1M")) {
      Command staged = stage(mount, "--report", report.toString()).expect(4);

      long copies = mount.status().number("tiers.0.copies");
      assertThat(copies).isBetween(5L, 10L);
      assertThat(staged.out())
          .contains("staged " + copies + " files, " + (COUNT - copies) + " files without room");
      assertThat(lines(report))
          .hasSize((int) (COUNT - copies))
          .allMatch(line -> line.contains("\"outcome\":\"no-room\""));
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  @Test
  void stage_fileThatVanished_isReportedAndTheOthersAreStaged() throws Exception {
    try (MountedPmfs mount = mount()) {
      assertThat(stage(mount, "--metadata-only").expect(0).out())
          .contains("imported names and attributes of 40 files");
      assertThat(mount.status().number("sourceOperations.reads")).isZero();
      String gone = dataset.items().get(5).name();
      Files.delete(dataset.root().resolve(gone));

      Command staged = stage(mount).expect(4);

      assertThat(staged.out()).contains("staged 39 files, 1 file failed");
      assertThat(staged.errorLines()).hasSize(1);
      assertThat(staged.err()).startsWith("pmfs: " + gone + ": ");
    }
  }

  @Test
  void stage_orderThroughASmallTier_staysAheadOfTheReader() {
    List<Item> shuffled = new ArrayList<>(dataset.items());
    Collections.shuffle(shuffled, new Random(7));
    Path order =
        write("order", shuffled.stream().map(Item::name).collect(Collectors.joining("\n")));
    try (MountedPmfs mount = mount("--tier", "ssd:" + pmfs.tier() + ":1M")) {
      Process client = start(mount, "--order", order.toString(), "--window", "500K");
      awaitMiddle(); // who reads before the task began is not noticed
      for (Item item : shuffled) {
        Dataset.assertEqualBelow(mount.mountpoint(), item);
      }

      assertThat(awaitExit(client)).as(new String(Dataset.read(output()), UTF_8)).isZero();
      Status status = mount.awaitStagingIdle();
      assertThat(status.number("tiers.0.usedBytes")).isLessThanOrEqualTo(1 << 20);
      assertThat(status.text("tiers.0.state")).isEqualTo("on");
      assertThat(status.number("sourceOperations.bytes")).isEqualTo(dataset.bytes());
    }
  }

  @Test
  @OnRequest("cases")
  void stage_orderDaemonKilled_goesOnWhereTheReaderIs() {
    Machine.requireRoot();
    List<Item> shuffled = new ArrayList<>(dataset.items());
    Collections.shuffle(shuffled, new Random(8));
    Path order =
        write("order", shuffled.stream().map(Item::name).collect(Collectors.joining("\n")));
    try (MountedPmfs mount = mount("--tier", "ssd:" + pmfs.tier() + ":1M")) {
      Process client = start(mount, "--order", order.toString(), "--window", "500K");
      awaitMiddle();
      List<Item> first = shuffled.subList(0, COUNT / 2);
      first.forEach(item -> Dataset.assertEqualBelow(mount.mountpoint(), item));
      Await.until("the position is kept", PATIENCE, () -> position() >= first.size());
      long killed = mount.daemon();
      mount.killDaemon();
      mount.awaitSuccessor(killed);
      Await.until("the next goes on", PATIENCE, () -> bytesInTier() >= 4L * SIZE);
      long bytes = mount.status().number("sourceOperations.bytes");
      for (Item item : shuffled.subList(COUNT / 2, COUNT)) {
        Dataset.assertEqualBelow(mount.mountpoint(), item);
      }

      assertThat(awaitExit(client)).as(new String(Dataset.read(output()), UTF_8)).isZero();
      assertThat(bytes).as("what was read is not staged again").isLessThan(dataset.bytes() / 2);
    }
  }

  /** How many paths of its order a prefetch has passed, by what is kept for the next daemon. */
  private long position() {
    for (Path file : Installation.files(pmfs.state())) {
      if (file.getFileName().toString().equals("task.json")) {
        Matcher from =
            Pattern.compile("\"from\":(\\d+)").matcher(new String(Dataset.read(file), UTF_8));
        return from.find() ? Long.parseLong(from.group(1)) : -1;
      }
    }
    return -1;
  }

  /** What a list takes must not add up. */
  @Test
  @OnRequest("cases")
  void stage_orderTwice_isTakenAndLeavesNothing() {
    assertTakenTwice(20_000);
  }

  /** The daemon has its usual heap. */
  @Test
  @OnRequest(value = "large", what = "a list as long as ImageNet")
  void stage_orderOfImageNetsLengthTwice_isTakenAndLeavesNothing() {
    assertTakenTwice(1_281_167);
  }

  private void assertTakenTwice(int lines) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < lines; i++) {
      text.append(dataset.items().get(i % COUNT).name()).append('\n');
    }
    Path order = write("order", text.toString());
    try (MountedPmfs mount = mount("--tier", "ssd:" + pmfs.tier() + ":1M")) {
      for (int round = 0; round < 2; round++) {
        Process client = start(mount, "--order", order.toString(), "--window", "500K");
        Await.until(
            "it runs",
            PATIENCE,
            () ->
                mount.status().text("task.state").equals("running")
                    && mount.status().number("task.totalFiles") == lines
                    && bytesInTier() >= 4L * SIZE);
        assertThat(lists()).hasSize(1);
        client.destroy(); // SIGTERM, as Ctrl-C
        awaitExit(client);
        Await.until(
            "it is cancelled",
            PATIENCE,
            () -> mount.status().text("task.state").equals("cancelled"));
      }

      Await.until("the lists are gone", PATIENCE, () -> lists().isEmpty());
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  private static Path parent(Path path) {
    return Objects.requireNonNull(path.getParent());
  }

  private List<Path> lists() {
    return Installation.files(pmfs.state()).stream()
        .filter(file -> parent(file).endsWith("lists"))
        .toList();
  }

  @Test
  void evict_part_dropsItsCopiesAndItStaysReadable() {
    try (MountedPmfs mount = mount()) {
      stage(mount).expect(0);

      Command evicted = pmfs.run("evict", mount.path("part-002")).expect(0);

      assertThat(evicted.out()).contains("dropped the copies of 10 files");
      assertThat(mount.status().number("tiers.0.copies")).isEqualTo(30);
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  @Test
  void verify_damagedCopy_isFoundAndRepairedOnRequest() {
    try (MountedPmfs mount = mount()) {
      stage(mount).expect(0);
      Item damaged = dataset.items().get(13);
      Dataset.Copy copy = Dataset.copyOf(damaged, pmfs.tier());
      Faults.flipByte(copy.file(), copy.offset() + SIZE - 1);
      String mountpoint = mount.mountpoint().toString();

      Command verified = pmfs.run("verify", "--source", "--repair", mountpoint).expect(4);

      assertThat(verified.out()).contains("verified 39 files, 1 file bad");
      assertThat(verified.err()).startsWith("pmfs: " + damaged.name() + ": ");
      pmfs.run("verify", mountpoint).expect(0);
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  @Test
  @OnRequest("cases")
  void path_notMounted_hasItsExitStatus() {
    for (String command : List.of("stage", "evict", "verify")) {
      pmfs.run(command, dataset.root().toString()).expect(3);
    }
  }

  private Path write(String name, String text) {
    try {
      return Files.writeString(pmfs.scratch().root().resolve(name), text);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static List<String> lines(Path file) {
    try {
      return Files.readAllLines(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
