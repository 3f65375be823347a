package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/**
 * Tests of jobs of a real Slurm around which scripts/slurm mounts and unmounts: a node that runs,
 * jobs of a user, and what must be left of them.
 */
abstract class SlurmJobs {
  static final Duration LONG = Duration.ofMinutes(3);
  static final String MEM = "--mem=100M";

  Scratch scratch;
  Account user;
  LocalSlurm slurm;
  Dataset dataset;
  Path base;
  Path tier;

  @BeforeEach
  void start() throws IOException {
    Machine.requireFuse();
    Machine.requireRoot();
    Machine.requireCommand("useradd");
    // Not in /tmp, which jobs may have of their own.
    scratch = new Scratch(Path.of("/var/tmp"));
    Path home = scratch.directory("home");
    user = new Account(home.toString());
    user.own(home.toString());
    dataset = Dataset.create(scratch.directory("source"), Dataset.sizes(20, 10_000));
    base = scratch.root().resolve("base");
    tier = scratch.root().resolve("tier");
    Path launcher = Installation.launcherForAll(scratch);
    Command.run(
            "cp",
            "-r",
            Installation.launcherOfCheckout().resolveSibling("slurm").toString(),
            launcher.resolveSibling("slurm").toString())
        .expect(0);
    configure("STRICT=no", "TIERS=(ssd:" + tier + ":80%)");
    startSlurm(LocalSlurm.Kind.PLAIN);
  }

  /** In the place of the one that runs. */
  final void startSlurm(LocalSlurm.Kind kind) throws IOException {
    if (slurm != null) {
      slurm.close();
    }
    slurm =
        new LocalSlurm(
            kind,
            scratch.directory("slurm-" + kind),
            around("prolog.d/50-pmfs"),
            around("epilog.d/50-pmfs"),
            around("task_prolog"));
  }

  /** Slurm gives these programs no variable of ours. */
  Path around(String script) throws IOException {
    Path program = scratch.root().resolve("scripts/slurm").resolve(script);
    Path wrapper = scratch.root().resolve(script.replace('/', '-'));
    Files.writeString(
        wrapper,
        """
        #!/bin/bash
        export PMFS_JOB_CONF=%s
        [ ! -e $PMFS_JOB_CONF.$SLURMD_NODENAME ] || PMFS_JOB_CONF+=.$SLURMD_NODENAME
        exec %s
        """
            .formatted(scratch.root().resolve("job.conf"), program));
    Files.setPosixFilePermissions(wrapper, PosixFilePermissions.fromString("rwxr-xr-x"));
    return wrapper;
  }

  void configure(String... lines) throws IOException {
    List<String> all = new ArrayList<>(List.of(lines));
    all.add("BASE=" + base);
    all.add("RUNTIME=" + scratch.root().resolve("run"));
    all.add("PMFS=" + scratch.root().resolve("scripts/pmfs"));
    all.add("OPTIONS=(--keep-free 0)");
    all.add("MOUNT_LIMIT=110");
    all.add("LIMIT=200");
    Files.write(scratch.root().resolve("job.conf"), all);
  }

  @AfterEach
  void stop() {
    try {
      if (slurm != null) {
        slurm.close();
      }
    } finally {
      if (user != null) {
        Command.run("pkill", "-KILL", "-u", user.name());
        user.close();
      }
      if (scratch != null) {
        String settings = "rm -f /run/pmfs-job-$(printf %s \"$1\" | sha256sum | cut -c 1-16)";
        for (String name : names(scratch.root())) {
          if (name.startsWith("job.conf")) {
            Command.run("sh", "-c", settings, "-", scratch.root().resolve(name).toString());
          }
        }
        scratch.close();
      }
    }
  }

  /** Submits a script as the user; answers the job's number. */
  String submit(String comment, String script, String... options) {
    List<String> line =
        new ArrayList<>(List.of("sbatch", "--parsable", "-n1", "--chdir", home().toString()));
    line.addAll(List.of("--comment", comment, "--output", home() + "/%j.out"));
    line.addAll(List.of(options));
    line.addAll(List.of("--wrap", script));
    return user.run(slurm.environment(), line.toArray(String[]::new)).expect(0).out().strip();
  }

  String asked(String further) {
    return "pmfs:source=" + dataset.root() + further;
  }

  Path home() {
    return scratch.root().resolve("home");
  }

  String output(String job) {
    try {
      return Files.readString(home().resolve(job + ".out"));
    } catch (IOException e) {
      return "";
    }
  }

  void awaitOutput(String job, String text) {
    Await.until(
        () -> text + " from " + job + ": " + output(job) + slurm.log(),
        LONG,
        () -> output(job).contains(text));
  }

  String awaitEnd(String job) {
    Await.until(
        () -> "the end of " + job + ": " + slurm.jobState(job) + slurm.log(),
        LONG,
        () ->
            !List.of("", "PENDING", "RUNNING", "COMPLETING", "CONFIGURING")
                .contains(slurm.jobState(job)));
    return slurm.jobState(job);
  }

  /** Two nodes, each with places of its own on the disk that they share here. */
  void startTwoNodes() throws IOException {
    startSlurm(LocalSlurm.Kind.TWO_NODES);
    Path common = scratch.root().resolve("job.conf");
    for (String node : slurm.nodes()) {
      List<String> lines = new ArrayList<>(Files.readAllLines(common));
      lines.add("BASE=" + base + "/" + node);
      lines.add("RUNTIME=" + scratch.root().resolve("run-" + node));
      lines.add("TIERS=(ssd:" + tier + "-" + node + ":80%)");
      Files.write(Path.of(common + "." + node), lines);
    }
  }

  void assertNothingLeft() {
    Await.until(
        () -> "the node idle: " + slurm.nodeState() + " " + slurm.nodeReason() + slurm.log(),
        LONG,
        () -> slurm.nodeState().equals("idle"));
    assertThat(slurm.nodeReason()).isEmpty();
    assertThat(Mounts.below(base)).isEmpty();
    // The kernel may take a moment to end the process that the daemon killed last.
    Await.until(() -> "no process: " + processes(), LONG, () -> processes().isEmpty());
    for (String node : Stream.concat(Stream.of(""), slurm.nodes().stream()).toList()) {
      for (String name : List.of("jobs", "keys", "mnt", "locks")) {
        assertThat(names(base.resolve(node).resolve(name))).as(node + " " + name).isEmpty();
      }
      String run = node.isEmpty() ? "run" : "run-" + node;
      assertThat(names(scratch.root().resolve(run + "-" + user.uid()))).isEmpty();
      assertThat(scratch.root().resolve(run + "-" + user.uid())).doesNotExist();
      assertThat(names(scratch.root().resolve(run))).isEmpty();
    }
  }

  void assertNoCopies() {
    assertThat(names(tier)).allMatch(name -> name.equals(".outputs-known"));
  }

  List<String> processes() {
    return Command.run("ps", "-eo", "pid=,stat=,args=")
        .out()
        .lines()
        .filter(l -> l.contains(base + "/") && !l.contains("<defunct>"))
        .toList();
  }

  long daemon() {
    return processes().stream()
        .filter(l -> l.contains("io.pmfs.cli.Main"))
        .map(l -> Long.parseLong(l.strip().split(" +", 2)[0]))
        .findFirst()
        .orElseThrow(() -> new AssertionError("no daemon: " + processes()));
  }

  static List<String> names(Path directory) {
    if (!Files.isDirectory(directory)) {
      return List.of();
    }
    try (Stream<Path> list = Files.list(directory)) {
      return list.map(p -> p.getFileName().toString()).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  String firstLine(String job) {
    return output(job).lines().findFirst().orElseThrow();
  }

  /** The mount point that the mounts of all jobs with that dataset share. */
  Path dataset(String job) {
    assertThat(firstLine(job)).endsWith("." + job);
    return Path.of(firstLine(job).replaceFirst("\\.\\d+$", ""));
  }

  Status status(String mountpoint) {
    Map<String, String> runtime = Map.of("PMFS_RUNTIME_DIR", scratch.root().resolve("run") + "");
    String pmfs = scratch.root().resolve("scripts/pmfs").toString();
    return Status.parse(
        Command.run(runtime, LONG, List.of(pmfs, "status", "--json", mountpoint)).expect(0).out());
  }

  void addToConfiguration(String line) throws IOException {
    Files.writeString(scratch.root().resolve("job.conf"), line + "\n", StandardOpenOption.APPEND);
  }

  Path program(String name, String text) throws IOException {
    Path file = home().resolve(name);
    program(file, "#!/bin/bash\n" + text + "\n");
    return file;
  }

  static void program(Path file, String text) throws IOException {
    Files.writeString(file, text);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  void permitFuse() {
    Machine.requireCommand("fusermount3");
    user.openFuse();
  }
}
