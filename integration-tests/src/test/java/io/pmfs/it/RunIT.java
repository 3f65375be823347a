package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code pmfs run}: whatever becomes of the command, and of the run itself, only copies stay. */
final class RunIT {
  private static final String HANDLER =
      "trap 'echo got %s; exit 9' %s; : >\"$0\"; while :; do sleep 0.1; done";

  @Installed private Installation pmfs;
  private Dataset dataset;
  private Path sign;
  private Path out;
  private Path err;

  @BeforeEach
  void makeSource() {
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(5, 10_000));
    sign = pmfs.scratch().root().resolve("sign");
    out = pmfs.scratch().root().resolve("out");
    err = pmfs.scratch().root().resolve("err");
  }

  private String[] line(Path mountpoint, List<String> options, String... command) {
    return lineOf(mountpoint, "ssd:" + pmfs.tier(), options, command);
  }

  private String[] lineOf(Path mountpoint, String tier, List<String> options, String... command) {
    List<String> line = new ArrayList<>(List.of("run", "--source", dataset.root().toString()));
    line.addAll(List.of("--mountpoint", mountpoint.toString(), "--keep-free", "0"));
    line.addAll(List.of("--tier", tier));
    line.addAll(options);
    line.add("--");
    line.addAll(List.of(command));
    return line.toArray(String[]::new);
  }

  private Command run(List<String> options, String... command) {
    return pmfs.run(line(pmfs.mountpoint(), options, command));
  }

  /** Starts a run whose command makes the sign when it has begun. */
  private Process start(Path mountpoint, List<String> options, String script) throws IOException {
    String[] arguments = line(mountpoint, options, "bash", "-c", script, sign.toString());
    // Who runs these tests may ignore them, and what it starts then does so, too.
    List<String> all = new ArrayList<>(List.of("env", "--default-signal=INT,HUP"));
    all.add(Installation.launcherOfCheckout().toString());
    all.addAll(List.of(arguments));
    ProcessBuilder builder =
        Command.builder(
            Map.of("PMFS_RUNTIME_DIR", pmfs.scratch().root().resolve("run").toString()), all);
    Process process =
        builder
            .redirectOutput(Redirect.appendTo(out.toFile()))
            .redirectError(Redirect.appendTo(err.toFile()))
            .start();
    Await.until(
        () -> "the command began: " + text(err),
        Duration.ofMinutes(2),
        () -> Files.exists(sign) || !process.isAlive());
    assertThat(process.isAlive()).as("%s", text(err)).isTrue();
    return process;
  }

  private static String text(Path file) {
    try {
      return Files.exists(file) ? Files.readString(file) : "";
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static int exit(Process process) throws InterruptedException {
    assertThat(process.waitFor(120, TimeUnit.SECONDS)).as("ends").isTrue();
    return process.exitValue();
  }

  private static void signal(String name, long pid) {
    Command.run("kill", "-" + name, Long.toString(pid)).expect(0);
  }

  /** Not the lock files, which are empty, as those of mounts. */
  private void assertNothingLeft() {
    Await.until(
        () -> "nothing of it left: " + Mounts.below(pmfs.scratch().root()) + processes(),
        Duration.ofMinutes(1),
        () -> Mounts.below(pmfs.scratch().root()).isEmpty() && processes().isEmpty());
    assertThat(Installation.files(pmfs.scratch().root().resolve("run")))
        .noneMatch(f -> f.toString().endsWith(".sock") || f.toString().endsWith(".json"));
  }

  private String processes() {
    return Command.run("pgrep", "-fa", "pmfs(-run|-supervise)? .*" + pmfs.scratch().root()).out();
  }

  @Test
  void run_command_seesTheDatasetAndPassesItsStatusOn() {
    Command ran =
        run(
            List.of("--stage"),
            "sh",
            "-c",
            "diff -r \"$PMFS_MOUNT\" \"$0\" && pwd && env | grep -c PMFS_LAUNCH_DIR; exit 7",
            dataset.root().toString());
    ran.expect(7);
    assertThat(ran.out().lines()).hasSize(2).last().isEqualTo("0");
    assertThat(ran.err()).contains("staged 5 files");
    assertThat(pmfs.copies()).isNotEmpty();
    assertNothingLeft();
  }

  /** A job whose command did not run must not end with 0. */
  @Test
  void run_commandWithoutDashes_runsWithItsOwnOptions() {
    List<String> words = new ArrayList<>(List.of("run", "--source", dataset.root().toString()));
    words.addAll(List.of("--keep-free", "0", "--tier", "ssd:" + pmfs.tier(), "--stage"));
    words.addAll(List.of("sh", "-c", "test -d \"$PMFS_MOUNT\" && echo \"$@\"; exit 7", "sh"));
    words.addAll(List.of("--stage", "--tier=x", "--", "--help"));
    Command ran = pmfs.run(words.toArray(String[]::new));
    ran.expect(7);
    assertThat(ran.out()).isEqualTo("--stage --tier=x -- --help\n");
    assertThat(ran.err()).contains("staged 5 files");
    assertNothingLeft();
  }

  @Test
  void run_wrongWords_areOneLineEach() {
    String source = "--source=" + dataset.root();
    assertRefused("pmfs: run: --source is missing", "run", "ls");
    assertRefused("pmfs: run: --source is missing", "run", "--", "ls");
    assertRefused("pmfs: Missing required parameter: 'COMMAND'", "run", source);
    assertRefused("pmfs: run: 'sh' stands before --", "run", source, "--purge", "sh", "--", "true");
    assertRefused(
        "pmfs: --teir: unknown option; did you mean --tier?", "run", source, "--teir", "x", "true");
    assertNothingLeft();
  }

  private void assertRefused(String line, String... words) {
    Command refused = pmfs.run(words);
    refused.expect(122);
    assertThat(refused.out()).isEmpty();
    assertThat(refused.err()).startsWith(line);
  }

  @Test
  @OnRequest("jobs")
  void run_withPurge_dropsItsCopiesAndItsMountpoint() {
    Path made = pmfs.scratch().root().resolve("made");
    pmfs.run(line(made, List.of("--stage", "--purge"), "test", "-d", made.toString())).expect(0);
    assertThat(made).doesNotExist();
    assertNothingLeft();
    assertThat(Installation.files(pmfs.tier())).isEmpty();
  }

  @Test
  @OnRequest("jobs")
  void run_withPurge_leavesCopiesThatWereThere() {
    run(List.of("--stage"), "true").expect(0);
    run(List.of("--purge"), "true").expect(0);
    assertThat(pmfs.copies()).isNotEmpty();
  }

  @ParameterizedTest
  @OnRequest("jobs")
  @CsvSource({"TERM,9", "INT,9", "HUP,9", "USR1,9"})
  void run_signal_isPassedOnAndNothingStays(String name, int status) throws Exception {
    Process run = start(pmfs.mountpoint(), List.of(), HANDLER.formatted(name, name));
    signal(name, run.pid());
    assertThat(exit(run)).isEqualTo(status);
    assertThat(text(out)).isEqualTo("got " + name + "\n");
    assertNothingLeft();
  }

  @Test
  @OnRequest("jobs")
  void run_twoSignals_bothReachTheCommand() throws Exception {
    Process run =
        start(
            pmfs.mountpoint(),
            List.of(),
            "n=0; trap 'n=$((n + 1)); : >\"$0.$n\"; [ $n = 1 ] || exit 9' TERM; : >\"$0\";"
                + " while :; do sleep 0.1; done");
    signal("TERM", run.pid());
    Await.until(
        "the first arrived", Duration.ofMinutes(1), () -> Files.exists(Path.of(sign + ".1")));
    assertThat(Mounts.at(pmfs.mountpoint())).isTrue();
    signal("TERM", run.pid());
    assertThat(exit(run)).isEqualTo(9);
    assertNothingLeft();
  }

  @Test
  @OnRequest("jobs")
  void run_commandEndedBySignal_is128AndTheSignal() {
    run(List.of(), "sh", "-c", "kill -KILL $$").expect(137);
    assertNothingLeft();
  }

  /** Also if the shell hears of it before it waits for it. */
  @Test
  void run_commandEndedBySignal_isNoLineOfTheShell() throws IOException {
    Path late = pmfs.scratch().root().resolve("late");
    Files.writeString(late, "trap '[[ $BASH_COMMAND != *start_of* ]] || sleep 0.5' DEBUG\n");
    pmfs.environment("BASH_ENV", late.toString());
    Command ran = run(List.of(), "sh", "-c", "echo mine >&2; kill -KILL $$");
    ran.expect(137);
    assertThat(ran.err()).endsWith("\nmine\n");
    assertThat(ran.errorLines()).hasSize(2);
    assertNothingLeft();
  }

  @Test
  @OnRequest("jobs")
  void kill9_ofTheRun_commandGoesOnAndNothingStaysAfterIt() throws Exception {
    Process run =
        start(
            pmfs.mountpoint(),
            List.of(),
            ": >\"$0\"; while [ -e \"$0\" ]; do sleep 0.1; done; ls \"$PMFS_MOUNT\" | wc -l");
    signal("KILL", run.pid());
    assertThat(exit(run)).isEqualTo(137);
    assertThat(Mounts.at(pmfs.mountpoint())).isTrue();
    Files.delete(sign);
    Await.until("it saw its files", Duration.ofMinutes(1), () -> !text(out).isEmpty());
    assertThat(text(out).strip()).isNotEqualTo("0");
    assertNothingLeft();
  }

  @Test
  @OnRequest("jobs")
  void run_processThatOutlivesTheCommand_isNamedAndTheMountDetached() throws Exception {
    Process run =
        start(
            pmfs.mountpoint(),
            List.of("--grace", "1s"),
            "cd \"$PMFS_MOUNT\"; sleep 1000 >/dev/null 2>&1 & echo $!; : >\"$0\"; sleep 1");
    try {
      assertThat(exit(run)).isZero();
      assertThat(text(err)).contains("(sleep)").contains("as its working directory");
      assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
    } finally {
      signal("KILL", Long.parseLong(text(out).strip()));
    }
    assertNothingLeft();
  }

  @Test
  @OnRequest("jobs")
  void run_severalOnOneMountpoint_shareItAndTheLastUnmounts() throws Exception {
    Process first =
        start(
            pmfs.mountpoint(),
            List.of(),
            ": >\"$0\"; while [ -e \"$0\" ]; do sleep 0.1; done; ls \"$PMFS_MOUNT\"");
    run(List.of(), "ls", pmfs.mountpoint().toString()).expect(0);
    assertThat(Mounts.count(pmfs.mountpoint())).isEqualTo(1);
    Files.delete(sign);
    assertThat(exit(first)).isZero();
    assertThat(text(out)).isNotEmpty();
    assertNothingLeft();
  }

  @Test
  @OnRequest("jobs")
  void run_severalOfOneDatasetOnOtherMountpoints_shareItsCopies() throws Exception {
    Process first =
        start(pmfs.mountpoint(), List.of(), ": >\"$0\"; while [ -e \"$0\" ]; do sleep 0.1; done");
    Path other = pmfs.scratch().root().resolve("other");
    Path second = pmfs.scratch().root().resolve("second");
    Process reader =
        pmfs.start(
            Redirect.DISCARD,
            Redirect.to(second.toFile()),
            line(
                other,
                List.of(),
                "bash",
                "-c",
                ": >\"$0-2\"; while [ -e \"$0-2\" ]; do diff -r \"$1\" \"$PMFS_MOUNT\" || exit;"
                    + " done",
                sign.toString(),
                dataset.root().toString()));
    Path secondSign = Path.of(sign + "-2");
    Await.until("the second began", Duration.ofMinutes(2), () -> Files.exists(secondSign));
    assertThat(text(second)).doesNotContain("run-2");
    Files.delete(sign);
    assertThat(exit(first)).isZero();
    assertThat(Mounts.below(pmfs.scratch().root())).hasSize(1);
    Files.delete(secondSign);
    assertThat(exit(reader)).as("%s", text(second)).isZero();
    assertThat(other).doesNotExist();
    assertNothingLeft();
  }

  @Test
  @OnRequest("jobs")
  void run_thatJoinsOneWithPurge_keepsTheCopies() throws Exception {
    Process first =
        start(
            pmfs.mountpoint(),
            List.of("--purge"),
            ": >\"$0\"; while [ -e \"$0\" ]; do sleep 0.1; done");
    Path other = pmfs.scratch().root().resolve("other");
    pmfs.run(line(other, List.of("--stage"), "true")).expect(0);
    Files.delete(sign);
    assertThat(exit(first)).isZero();
    assertThat(pmfs.copies()).isNotEmpty();
    assertNothingLeft();
  }

  /** Running or not, block by block: what is damaged comes from the source. */
  @Test
  @OnRequest("jobs")
  void run_inAnotherJob_readsCopiesThatOthersHaveMade() throws Exception {
    dataset = Dataset.create(pmfs.directory("larger"), 3_000_000, 3_000_000, 10_000);
    pmfs.environment("SLURM_JOB_ID", "41");
    Process first =
        pmfs.start(
            Redirect.DISCARD,
            Redirect.to(err.toFile()),
            line(
                pmfs.mountpoint(),
                List.of("--stage"),
                "bash",
                "-c",
                ": >\"$0\"; while [ -e \"$0\" ]; do sleep 0.1; done",
                sign.toString()));
    Await.until("the first began", Duration.ofMinutes(2), () -> Files.exists(sign));
    Faults.flipByte(Dataset.copyOf(dataset.items().get(0), pmfs.tier()).file(), 2_500_000);
    pmfs.environment("SLURM_JOB_ID", "42");
    assertThat(sourceBytesOfARun()).isEqualTo(3_000_000 - 2 * (1 << 20));
    Files.delete(sign);
    assertThat(exit(first)).isZero();

    // The copies of the second job are in a set of their own, which no job uses now.
    for (Path place : List.of(pmfs.tier(), pmfs.tier().resolve("state"))) {
      Command.run(
              "find",
              place + "",
              "-maxdepth",
              "1",
              "-name",
              "larger-*",
              "-exec",
              "rm",
              "-r",
              "{}",
              "+")
          .expect(0);
    }
    assertThat(Installation.files(pmfs.tier())).isNotEmpty();
    pmfs.environment("SLURM_JOB_ID", "43");
    assertThat(sourceBytesOfARun()).isZero();
    assertNothingLeft();
  }

  @ParameterizedTest
  @OnRequest("jobs")
  @ValueSource(strings = {"none", "zstd"})
  void run_inAnotherJob_takesNoRoomForCopiesThatAreThere(String compression) throws Exception {
    dataset = Dataset.create(pmfs.directory("larger"), 3_000_000, 300_000, 10_000, 10_001);
    pmfs.environment("SLURM_JOB_ID", "41");
    Process first =
        pmfs.start(
            Redirect.DISCARD,
            Redirect.to(err.toFile()),
            line(
                pmfs.mountpoint(),
                List.of("--stage", "--compression", compression),
                "bash",
                "-c",
                ": >\"$0\"; while [ -e \"$0\" ]; do sleep 0.1; done",
                sign.toString()));
    Await.until("the first began", Duration.ofMinutes(2), () -> Files.exists(sign));
    long room = roomOfCopies();
    pmfs.environment("SLURM_JOB_ID", "42");
    assertThat(sourceBytesOfARun()).isZero();
    assertThat(pmfs.tier().resolve("run-2")).isDirectory();
    assertThat(roomOfCopies()).isEqualTo(room).isPositive();
    Files.delete(sign);
    assertThat(exit(first)).isZero();
    assertNothingLeft();
  }

  /** Blocks of the files with copies, in all sets. */
  private long roomOfCopies() {
    String find = "find \"$0\" -type f \\( -path '*/copies/*' -o -path '*/bundles/*' \\)";
    String sum = find + " -printf '%i %b\\n' | sort -u | awk '{s += $2} END {print s + 0}'";
    return Long.parseLong(Command.run("sh", "-c", sum, pmfs.tier() + "").expect(0).out().trim());
  }

  /** As the tier that a prologue names. */
  @Test
  @OnRequest("jobs")
  void run_withAnotherTier_readsTheCopiesThatAreThere() {
    run(List.of("--stage"), "true").expect(0);
    // A configuration names no tier.
    Await.until(
        () -> "the tier is known: " + pmfs.run("cache").out(),
        Duration.ofSeconds(30),
        () -> pmfs.run("cache").out().contains("ssd:" + pmfs.tier()));
    Path before = pmfs.tier();
    assertThat(sourceBytesOfARun("ssd:" + pmfs.directory("another"))).isZero();
    assertNothingLeft();
    assertThat(pmfs.run("cache", "--purge", "--all").expect(0).out())
        .contains(dataset.root().toString());
    assertThat(Installation.files(before)).isEmpty();
  }

  /** Others may have put something else there. */
  @Test
  @OnRequest("jobs")
  void run_whereOthersCanChangeTheCopies_readsTheSource() {
    run(List.of("--stage"), "true").expect(0);
    Await.until(
        () -> "the tier is known: " + pmfs.run("cache").out(),
        Duration.ofSeconds(30),
        () -> pmfs.run("cache").out().contains("ssd:" + pmfs.tier()));
    Command.run("chmod", "777", pmfs.tier().toString()).expect(0);
    assertThat(sourceBytesOfARun("ssd:" + pmfs.directory("another"))).isEqualTo(dataset.bytes());
    assertNothingLeft();
  }

  private long sourceBytesOfARun() {
    return sourceBytesOfARun("ssd:" + pmfs.tier());
  }

  /** Of one that reads everything. */
  private long sourceBytesOfARun(String tier) {
    Command ran =
        pmfs.run(
            lineOf(
                pmfs.scratch().root().resolve("other"),
                tier,
                List.of(),
                "bash",
                "-c",
                "diff -r \"$1\" \"$PMFS_MOUNT\" && exec \"$0\" status --json \"$PMFS_MOUNT\"",
                Installation.launcherOfCheckout().toString(),
                dataset.root().toString()));
    return Status.parse(ran.expect(0).out()).number("sourceOperations.bytes");
  }

  /** The first job's daemon ends with that job. */
  @Test
  @OnRequest("jobs")
  void run_whileAnotherJobHasTheDataset_keepsCopiesOfItsOwn() throws Exception {
    pmfs.environment("SLURM_JOB_ID", "41");
    Process first =
        pmfs.start(
            Redirect.DISCARD,
            Redirect.to(err.toFile()),
            line(
                pmfs.mountpoint(),
                List.of(),
                "bash",
                "-c",
                ": >\"$0\"; while [ -e \"$0\" ]; do sleep 0.1; done",
                sign.toString()));
    Await.until("the first began", Duration.ofMinutes(2), () -> Files.exists(sign));
    pmfs.environment("SLURM_JOB_ID", "42");
    Path other = pmfs.scratch().root().resolve("other");
    Command second =
        pmfs.run(line(other, List.of("--purge"), "diff", "-r", dataset.root() + "", other + ""));
    second.expect(0);
    assertThat(second.err()).contains("run-2");
    assertThat(other).doesNotExist();
    try (Stream<Path> files = Files.walk(pmfs.scratch().root())) {
      assertThat(files.filter(file -> file.endsWith("run-2"))).as("its own copies").isEmpty();
    }
    Files.delete(sign);
    assertThat(exit(first)).isZero();
    assertNothingLeft();
  }

  /** As a scheduler ends a job or a step with all its processes. */
  @ParameterizedTest
  @OnRequest("jobs")
  @ValueSource(strings = {"0", "7"})
  void cgroupKill_ofTheMountOfAnotherRun_isMountedAgainAndNoSuccess(int status) throws Exception {
    ControlGroup group = new ControlGroup("pids");
    Path first = pmfs.scratch().root().resolve("first");
    Path firstSign = Path.of(sign + "-1");
    pmfs.environment("PBS_JOBID", "41.host");
    String hold = ": >\"$0\"; while [ -e \"$0\" ]; do sleep 0.1; done";
    List<String> all = new ArrayList<>(List.of("sh", "-c", "echo $$ >\"$0\"; exec \"$@\""));
    all.add(group.processes().toString());
    all.add(Installation.launcherOfCheckout().toString());
    all.addAll(List.of(line(first, List.of(), "bash", "-c", hold, firstSign.toString())));
    Process killed =
        Command.builder(pmfs.environment(), all)
            .redirectError(Redirect.appendTo(err.toFile()))
            .start();
    try {
      Await.until("the first began", Duration.ofMinutes(2), () -> Files.exists(firstSign));
      String script = "; diff -r \"$1\" \"$PMFS_MOUNT\" && echo same; exit " + status;
      Process run =
          pmfs.start(
              Redirect.to(out.toFile()),
              Redirect.to(err.toFile()),
              line(
                  pmfs.mountpoint(),
                  List.of(),
                  "bash",
                  "-c",
                  hold + script,
                  sign.toString(),
                  dataset.root().toString()));
      Await.until("the second began", Duration.ofMinutes(2), () -> Files.exists(sign));
      group.killAll();
      Await.until(
          () -> "mounted again: " + text(err),
          Duration.ofMinutes(2),
          () -> text(err).contains("mounting again") && text(err).split(" mounted on ").length > 2);
      Files.delete(sign);
      assertThat(exit(run)).as("%s", text(err)).isEqualTo(status == 0 ? 121 : status);
      assertThat(text(out)).isEqualTo("same\n");
      assertThat(text(err).contains("although the command ended with 0")).isEqualTo(status == 0);
    } finally {
      group.killAll();
      killed.waitFor();
      group.close();
    }
    pmfs.run("umount", first.toString());
    assertNothingLeft();
  }

  /** It may have read an empty directory. */
  @Test
  @OnRequest("jobs")
  void umount_whileTheCommandRuns_isUndoneAndNoSuccess() {
    Command ran =
        run(
            List.of(),
            "bash",
            "-c",
            "\"$0\" umount \"$PMFS_MOUNT\";"
                + " until [ -e \"$PMFS_MOUNT/part-000/file-00000\" ]; do sleep 0.1; done",
            Installation.launcherOfCheckout().toString());
    ran.expect(121);
    assertThat(ran.err()).contains("although the command ended with 0");
    assertNothingLeft();
  }

  /** Then the source itself is mounted there, and the run takes it away in the end. */
  @Test
  @OnRequest("cases")
  void crashLoop_whileTheCommandRuns_isReadOnFromTheSourceAndNoSuccess() {
    Machine.requireRoot();
    pmfs.environment("PMFS_CRASH_LIMIT", "0");
    Command ran =
        run(
            List.of("--allow-other"),
            "bash",
            "-c",
            "kill -KILL $(\"$0\" status --json \"$PMFS_MOUNT\" | grep -oP '\"pid\": \\K\\d+' | head"
                + " -n 1); while grep -q \"$PMFS_MOUNT .*fuse.pmfs\" /proc/self/mountinfo; do sleep"
                + " 0.1; done; sleep 5; diff -r \"$1\" \"$PMFS_MOUNT\" && echo same",
            Installation.launcherOfCheckout().toString(),
            dataset.root().toString());
    assertThat(ran.out()).isEqualTo("same\n");
    ran.expect(121);
    assertThat(ran.err())
        .containsOnlyOnce("the source itself is mounted there now")
        .doesNotContain("mounting again")
        .contains("although the command ended with 0");
    assertNothingLeft();
    assertThat(pmfs.mountpoint()).isEmptyDirectory();
  }

  /** Neither may take the other's mount with it; the script's is there for all. */
  @Test
  @OnRequest("jobs")
  void run_inAnotherStepOfAJob_sharesOnlyTheScriptsDaemon() throws Exception {
    pmfs.environment("SLURM_JOB_ID", "41");
    String shares = "shares the daemon of";
    for (String step : new String[] {null, "0"}) {
      if (step != null) {
        pmfs.environment("SLURM_STEP_ID", step);
      }
      Files.deleteIfExists(sign);
      Process first =
          pmfs.start(
              Redirect.DISCARD,
              Redirect.appendTo(err.toFile()),
              line(
                  pmfs.mountpoint(),
                  List.of(),
                  "bash",
                  "-c",
                  ": >\"$0\"; while [ -e \"$0\" ]; do sleep 0.1; done",
                  sign.toString()));
      Await.until("the first began", Duration.ofMinutes(2), () -> Files.exists(sign));
      pmfs.environment("SLURM_STEP_ID", "1");
      Path other = pmfs.scratch().root().resolve("other");
      Command second = pmfs.run(line(other, List.of(), "true")).expect(0);
      assertThat(second.err().contains(shares)).as("%s", second.err()).isEqualTo(step == null);
      Files.delete(sign);
      assertThat(exit(first)).as("%s", text(err)).isZero();
    }
    assertNothingLeft();
  }

  @Test
  @OnRequest("jobs")
  void run_onAMountThatWasThere_leavesIt() {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      run(List.of(), "ls", mount.mountpoint().toString()).expect(0);
      assertThat(Mounts.at(mount.mountpoint())).isTrue();
    }
  }

  @Test
  void run_onAMountOfAnotherRuntimeDirectory_isRefusedAndLeavesIt() {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      Path other = pmfs.directory("other");
      Command.run("chmod", "700", other.toString()).expect(0);
      pmfs.environment("PMFS_RUNTIME_DIR", other.toString());
      Command refused = run(List.of(), "true").expect(122);
      assertThat(refused.err()).contains("already mounted");
      assertThat(Mounts.at(mount.mountpoint())).isTrue();
    }
  }

  /** As Ctrl-C does it on a terminal. */
  @Test
  @OnRequest("jobs")
  void interrupt_whileTheRunLooksAtAMountThatWasThere_leavesIt() throws Exception {
    pmfs.environment("PMFS_WATCHDOG", "300");
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      signal("STOP", mount.pid());
      List<String> all = new ArrayList<>(List.of("setsid", "env", "--default-signal=INT"));
      all.add(Installation.launcherOfCheckout().toString());
      all.addAll(List.of(line(pmfs.mountpoint(), List.of(), "true")));
      Process run =
          Command.builder(pmfs.environment(), all)
              .redirectOutput(out.toFile())
              .redirectError(err.toFile())
              .start();
      String look = "io.pmfs.cli.Main status -- " + pmfs.mountpoint();
      Await.until(
          () -> "it asks the daemon: " + text(err),
          Duration.ofMinutes(1),
          () -> Command.run("pgrep", "-f", look).exit() == 0);
      Command.run("kill", "-INT", "--", "-" + run.pid()).expect(0);
      signal("CONT", mount.pid());
      assertThat(exit(run)).as("%s", text(err)).isEqualTo(130);
      assertThat(Mounts.at(mount.mountpoint())).isTrue();
    }
  }

  /** The other mount is there between the run's look and its own attempt. */
  @Test
  @OnRequest("jobs")
  void run_whileAnotherMountsThere_isRefusedAndLeavesIt() throws Exception {
    Path wait = pmfs.scratch().root().resolve("wait");
    Path looked = pmfs.scratch().root().resolve("looked");
    Path go = pmfs.scratch().root().resolve("go");
    String trap =
        "set -T; trap '[[ $BASH_COMMAND != \"pmfs_do mount\"* ]]"
            + " || { : >%s; until [ -e %s ]; do sleep 0.1; done; }' DEBUG\n";
    Files.writeString(wait, trap.formatted(looked, go));
    pmfs.environment("BASH_ENV", wait.toString());
    Process run =
        pmfs.start(
            Redirect.DISCARD,
            Redirect.to(err.toFile()),
            line(pmfs.mountpoint(), List.of(), "true"));
    Await.until(
        () -> "it is about to mount: " + text(err),
        Duration.ofMinutes(1),
        () -> Files.exists(looked));
    pmfs.environment("BASH_ENV", "");
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      Files.createFile(go);
      assertThat(exit(run)).as("%s", text(err)).isEqualTo(122);
      assertThat(Mounts.at(mount.mountpoint())).isTrue();
    }
  }

  /** The killed run's record may fit the next mount, to which the kernel gives the same numbers. */
  @Test
  @OnRequest("jobs")
  void run_onAMountWhereAnotherRunWasKilled_leavesIt() throws Exception {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      try (Stream<Path> files = Files.list(pmfs.scratch().root().resolve("run"))) {
        String entry =
            files.filter(f -> f.toString().endsWith(".json")).findFirst().orElseThrow().toString();
        Files.writeString(Path.of(entry.replace(".json", ".run")), "begun \n");
      }
      run(List.of(), "true").expect(0);
      assertThat(Mounts.at(mount.mountpoint())).isTrue();
    }
  }

  @Test
  @OnRequest("cases")
  void run_whereTheSourceStandsIn_isRefusedAndLeavesIt() {
    Machine.requireRoot();
    pmfs.environment("PMFS_CRASH_LIMIT", "0");
    try (MountedPmfs mount = pmfs.mount(dataset.root(), "--allow-other")) {
      mount.killDaemon();
      Await.until("the source stands in", Duration.ofMinutes(1), () -> !mount.isSupervised());
      mount.ended();
      run(List.of(), "true").expect(122);
      assertThat(Mounts.at(pmfs.mountpoint())).isTrue();
      pmfs.run("umount", pmfs.mountpoint().toString()).expect(0);
    }
  }

  /**
   * The first job's mount is elsewhere when another takes its place, and with it the number that
   * the kernel gives to a mount.
   */
  @Test
  @OnRequest("jobs")
  void run_whoseMountpointIsAnothersByThen_leavesThat() throws Exception {
    Path elsewhere = pmfs.directory("elsewhere");
    try (Installation next = new Installation()) {
      Path source = Dataset.create(next.directory("source"), 1000).root();
      Process first =
          start(pmfs.mountpoint(), List.of(), ": >\"$0\"; while [ -e \"$0\" ]; do sleep 0.1; done");
      String place = pmfs.mountpoint().toString();
      String made = next.mountpoint().toString();
      next.run(next.mountArguments(source, next.mountpoint())).expect(0);
      Command.run("mount", "--bind", place, elsewhere.toString()).expect(0);
      // At once, because the run mounts again where nothing is.
      String replace = "umount -i -l \"$0\" && mount --bind \"$1\" \"$0\"";
      Command.run("sh", "-c", replace, place, made).expect(0);
      next.run("umount", made).expect(0);
      Command.run("umount", "-i", "-l", elsewhere.toString()).expect(0);
      Files.delete(sign);
      assertThat(exit(first)).as("its mount was lost").isEqualTo(121);
      assertThat(Mounts.at(pmfs.mountpoint())).isTrue();
      next.run("umount", place).expect(0);
    }
  }

  @Test
  @OnRequest("jobs")
  void run_thatCannotMount_saysWhyOrRunsOnTheSource() {
    String tier = "ssd:/proc/nowhere";
    Command refused = run(List.of("--tier", tier), "echo", "ran");
    refused.expect(122);
    assertThat(refused.out()).isEmpty();
    assertThat(refused.errorLines()).hasSize(1);
    Command ran = run(List.of("--tier", tier, "--or-source"), "sh", "-c", "echo $PMFS_MOUNT");
    ran.expect(0);
    assertThat(ran.out().strip()).isEqualTo(dataset.root().toString());
    Command absent = run(List.of(), "no-such-command").expect(127);
    assertThat(absent.errorLines()).as("nothing was mounted").hasSize(1);
    Command line = run(List.of(), "echo $PMFS_MOUNT").expect(127);
    assertThat(line.errorLines())
        .containsExactly(
            "pmfs: run: echo $PMFS_MOUNT: not found; to run a line of shell, write -- sh -c 'echo $PMFS_MOUNT'");
    run(List.of(), dataset.root().toString()).expect(126);
    assertNothingLeft();
  }
}
