package io.pmfs.it;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * A Slurm on loopback, whose nodes are all this machine: munged, slurmctld and slurmds in a
 * directory of their own. Close cancels what runs and ends them. It takes root.
 */
final class LocalSlurm implements AutoCloseable {
  /** What it is made of. */
  enum Kind {
    /** One node, which follows processes by their parents. */
    PLAIN,
    /** One node, with a cgroup for each job that bounds its memory. */
    CGROUPS,
    /** The same, and each job has a /tmp, a /dev/shm and a mount namespace of its own. */
    PRIVATE_TMP,
    /** Two nodes, each called by an address that the loopback device has meanwhile. */
    TWO_NODES
  }

  private static final Path CGROUPS = Path.of("/sys/fs/cgroup");

  /** For benchmarks of networks (RFC 2544): no network of this machine has them. */
  private static final List<String> ADDRESSES = List.of("198.18.1.1", "198.18.1.2");

  private final Kind kind;
  private final Path root;
  private final Map<String, String> environment;
  private final List<Process> daemons = new ArrayList<>();

  /** Starts it with these programs around each job. */
  LocalSlurm(Kind kind, Path root, Path prolog, Path epilog, Path taskProlog) {
    assumeTrue(
        !hasCgroups(kind) || Files.isDirectory(CGROUPS.resolve("freezer")),
        "needs cgroups of version 1 with freezer");
    for (String daemon : List.of("slurmctld", "slurmd", "munged")) {
      assumeTrue(
          Machine.onPath(daemon), "needs " + daemon + ": scripts/install-requirements slurm");
    }
    this.kind = kind;
    this.root = root;
    String file = root.resolve("slurm.conf").toString();
    this.environment = Map.of("SLURM_CONF", file);
    try {
      // munged wants no directory above its socket that others may write to.
      for (String name : List.of("state", "spool", "log", "run")) {
        Files.createDirectories(root.resolve(name));
      }
      key();
      Files.writeString(root.resolve("slurm.conf"), configuration(prolog, epilog, taskProlog));
      Files.write(
          root.resolve("cgroup.conf"),
          List.of(
              "CgroupPlugin=cgroup/v1",
              "CgroupMountpoint=" + CGROUPS,
              "CgroupAutomount=no",
              "ConstrainRAMSpace=yes"));
      Files.write(
          root.resolve("job_container.conf"),
          List.of("AutoBasePath=true", "BasePath=" + root.resolve("containers")));
      String run = root.resolve("run").toString();
      start(
          "munged",
          "--foreground",
          "--force",
          "--key-file=" + root.resolve("munge.key"),
          "--socket=" + run + "/munge.sock",
          "--pid-file=" + run + "/munged.pid",
          "--log-file=" + root.resolve("log/munged.log"),
          "--seed-file=" + root.resolve("state/seed"));
      Await.until(
          "munged", Duration.ofSeconds(30), () -> Files.exists(Path.of(run + "/munge.sock")));
      start("slurmctld", "-D", "-f", file);
      if (kind == Kind.TWO_NODES) {
        ADDRESSES.forEach(address -> address("replace", address).expect(0));
      }
      for (String node : nodes()) {
        Files.createDirectories(root.resolve("spool").resolve(node));
        start("slurmd", "-D", "-N", node, "-f", file);
      }
      Await.until(
          () -> "the node is idle: " + nodeState(),
          Duration.ofMinutes(2),
          () -> nodeState().equals("idle"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (AssertionError e) {
      close();
      throw e;
    }
  }

  private static boolean hasCgroups(Kind kind) {
    return kind == Kind.CGROUPS || kind == Kind.PRIVATE_TMP;
  }

  private void key() throws IOException {
    byte[] key = new byte[1024];
    new java.security.SecureRandom().nextBytes(key);
    Path file = Files.write(root.resolve("munge.key"), key);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("r--------"));
  }

  private static String host() {
    return Command.run("hostname", "-s").expect(0).out().strip();
  }

  private static Command address(String change, String address) {
    return Command.run("ip", "addr", change, address + "/32", "dev", "lo");
  }

  /** The names of its nodes. */
  List<String> nodes() {
    return kind == Kind.TWO_NODES ? ADDRESSES : List.of(host());
  }

  private String configuration(Path prolog, Path epilog, Path taskProlog) throws IOException {
    String host = host();
    boolean limits = hasCgroups(kind);
    boolean isPrivate = kind == Kind.PRIVATE_TMP;
    List<String> lines = new ArrayList<>();
    for (String node : nodes()) {
      lines.add(
          "NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=2 RealMemory=1000 State=UNKNOWN"
              .formatted(node, host, freePort()));
    }
    return String.join(
        "\n",
        "ClusterName=one",
        "SlurmctldHost=" + host + "(127.0.0.1)",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        "AuthInfo=socket=" + root.resolve("run/munge.sock"),
        "StateSaveLocation=" + root.resolve("state"),
        "SlurmdSpoolDir=" + root.resolve("spool/%n"),
        "SlurmctldPidFile=" + root.resolve("run/ctld.pid"),
        "SlurmdPidFile=" + root.resolve("run/d-%n.pid"),
        "SlurmctldLogFile=" + root.resolve("log/ctld.log"),
        "SlurmdLogFile=" + root.resolve("log/d.log"),
        "ProctrackType=proctrack/" + (limits ? "cgroup" : "linuxproc"),
        "TaskPlugin=task/" + (limits ? "cgroup" : "none"),
        "SelectType=select/cons_tres",
        "SelectTypeParameters=" + (limits ? "CR_CPU_Memory" : "CR_CPU"),
        limits ? "DefMemPerCPU=200" : "",
        "ReturnToService=0",
        "Prolog=" + prolog,
        "Epilog=" + epilog,
        "TaskProlog=" + taskProlog,
        "PrologFlags=Alloc" + (isPrivate ? ",Contain" : ""),
        isPrivate ? "JobContainerType=job_container/tmpfs" : "",
        "SlurmctldPort=" + freePort(),
        "MpiDefault=none",
        "MessageTimeout=60",
        "KillWait=2",
        String.join("\n", lines),
        // Jobs that ask for it (--oversubscribe) share the CPUs.
        "PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES:10",
        "");
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  private void start(String... line) throws IOException {
    Path log = root.resolve("log/" + line[0] + ".out");
    List<String> all =
        new ArrayList<>(List.of("sh", "-c", "PATH=$PATH:/usr/sbin:/sbin exec \"$@\"", "sh"));
    all.addAll(List.of(line));
    daemons.add(
        Command.builder(environment, all)
            .directory(root.toFile())
            .redirectErrorStream(true)
            .redirectOutput(log.toFile())
            .start());
  }

  Map<String, String> environment() {
    return environment;
  }

  /** Of each kind one line: {@code idle}, {@code mixed}, {@code drained}, ... */
  String nodeState() {
    return slurm("sinfo", "-h", "-o", "%T").out().strip();
  }

  /** Why it is down or drained; empty if it is not. */
  String nodeReason() {
    return slurm("sinfo", "-h", "-R", "-o", "%E").out().strip();
  }

  /** {@code RUNNING}, {@code COMPLETED}, {@code CANCELLED}, {@code TIMEOUT}, ... */
  String jobState(String job) {
    return slurm("scontrol", "show", "job", job)
        .out()
        .lines()
        .filter(l -> l.contains("JobState="))
        .map(l -> l.replaceAll(".*JobState=(\\S+).*", "$1"))
        .findFirst()
        .orElse("");
  }

  Command slurm(String... line) {
    return Command.run(environment, Command.DEADLINE, List.of(line));
  }

  /** The end of slurmd's log. */
  String log() {
    try (Stream<String> lines = Files.lines(root.resolve("log/d.log"))) {
      List<String> all = lines.toList();
      return String.join("\n", all.subList(Math.max(0, all.size() - 40), all.size()));
    } catch (IOException e) {
      return e.toString();
    }
  }

  @Override
  public void close() {
    slurm("scancel", "--state=RUNNING");
    for (int i = daemons.size() - 1; i >= 0; i--) {
      Process daemon = daemons.get(i);
      daemon.destroy();
      try {
        if (!daemon.waitFor(20, TimeUnit.SECONDS)) {
          daemon.destroyForcibly().waitFor();
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
    if (kind == Kind.TWO_NODES) {
      ADDRESSES.forEach(address -> address("del", address));
    }
    if (hasCgroups(kind)) {
      String line = "find \"$1\"/*/slurm* -depth -type d -exec rmdir {} + 2>/dev/null; true";
      Command.run("sh", "-c", line, "sh", CGROUPS.toString());
    }
  }
}
