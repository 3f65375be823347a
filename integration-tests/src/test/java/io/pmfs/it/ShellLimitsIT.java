package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Limits of a shell, setrlimit(2), of every kind, for the launcher, the daemon and its commands:
 * those of root and of an account without privileges.
 */
final class ShellLimitsIT {
  /** As low as the launcher's refusals say that they may be; the others at the least of all. */
  private static final List<String> LOWEST =
      List.of(
          "prlimit",
          "--as=2684354560:2684354560",
          "--data=1073741824:1073741824",
          "--fsize=1073741824:1073741824",
          "--cpu=60:60",
          "--stack=262144:262144",
          "--nofile=256:256",
          "--nproc=130:130",
          "--core=0:0",
          "--locks=0:0",
          "--memlock=0:0",
          "--msgqueue=0:0",
          "--nice=0:0",
          "--rss=0:0",
          "--rtprio=0:0",
          "--rttime=0:0",
          "--sigpending=0:0");

  private static final String WRITE =
      "cd -- \"$1\" && mkdir new && for i in $(seq 300); do echo $i >new/f$i || exit; done"
          + " && mv new/f1 new/moved && rm new/f2 && head -c 3M /dev/urandom >new/large";

  private Scratch code;
  private Path launcher;
  private Account user;

  @BeforeEach
  void becomeAble() {
    Machine.requireFuse();
    Machine.requireRoot();
    for (String command : List.of("prlimit", "useradd", "setpriv", "fusermount3")) {
      Machine.requireCommand(command);
    }
    code = new Scratch();
    launcher = Installation.launcherForAll(code);
    user = new Account(code.directory("home").toString());
    user.openFuse();
  }

  @AfterEach
  void putBack() {
    try {
      if (user != null) {
        user.close();
      }
    } finally {
      if (code != null) {
        code.close();
      }
    }
  }

  /** An installation whose commands run under limits. */
  private Installation under(List<String> limits, boolean byRoot) {
    List<String> prefix = new ArrayList<>(byRoot ? List.of() : user.prefix());
    prefix.addAll(limits);
    Installation pmfs = new Installation(launcher, prefix);
    if (!byRoot) {
      pmfs.giveTo(user.uid(), user.gid());
    }
    return pmfs;
  }

  private void run(boolean byRoot, String... line) {
    List<String> all = new ArrayList<>(byRoot ? List.of() : user.prefix());
    all.addAll(List.of(line));
    Command.run(all.toArray(String[]::new)).expect(0);
  }

  private static void assertSame(MountedPmfs mount, Runnable comparison) {
    comparison.run();
    assertThat(mount.status().number("reads.errors")).isZero();
  }

  @ParameterizedTest
  @CsvSource({"true, false", "false, false", "true, true", "false, true"})
  void mount_whereEachLimitIsTheLowest_givesEveryByte(boolean byRoot, boolean isWritable) {
    Requested.assume("modes", byRoot != isWritable, "the same by root or a user");
    try (Installation pmfs = under(LOWEST, byRoot)) {
      Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(400, 20_000));
      if (!byRoot) {
        Command.run("chown", "-R", user.name(), dataset.root().toString()).expect(0);
      }
      String[] options = isWritable ? new String[] {"--writable"} : new String[0];
      try (MountedPmfs mount = pmfs.mount(dataset.root(), options)) {
        String place = mount.mountpoint().toString();
        Runnable compare = () -> run(byRoot, "diff", "-r", dataset.root().toString(), place);
        assertSame(mount, compare);
        if (isWritable) {
          run(byRoot, "sh", "-euc", WRITE, "-", place);
          pmfs.run("drain", place).expect(0);
        } else {
          pmfs.run("stage", place).expect(0);
        }
        assertSame(mount, compare);
        pmfs.run("status", place).expect(0);
      }
    }
  }

  /** The supervisor passes its limits on to each daemon. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  @OnRequest("cases")
  void daemon_whereEachLimitIsTheLowest_isReplaced(boolean isWritable) throws Exception {
    Requested.assume("modes", !isWritable, "the same with --writable");
    try (Installation pmfs = under(LOWEST, true)) {
      Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(400, 20_000));
      String[] options = isWritable ? new String[] {"--writable"} : new String[0];
      try (MountedPmfs mount = pmfs.mount(dataset.root(), options);
          Readers readers = new Readers(dataset, mount.mountpoint(), 2, List.of())) {
        String place = mount.mountpoint().toString();
        readers.awaitMore(50);
        long first = mount.daemon();
        mount.killDaemon();
        long second = mount.awaitSuccessor(first);
        readers.awaitMore(50);
        pmfs.run("upgrade", place).expect(0);
        mount.awaitSuccessor(second);
        readers.awaitMore(50);
        readers.assertNoFailures();
        if (isWritable) {
          run(true, "sh", "-euc", WRITE, "-", place);
          pmfs.run("drain", place).expect(0);
        } else {
          pmfs.run("stage", place).expect(0);
        }
        pmfs.run("status", place).expect(0);
      }
    }
  }

  /** A limit on root's own threads has no effect. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "as=2684354559",
        "data=1073741823",
        "fsize=1073741823",
        "cpu=59",
        "stack=262143",
        "nofile=255",
        "nproc=100"
      })
  void mount_whereALimitIsLower_isRefusedInALineForRootAndUsers(String limit) {
    // LauncherTest has the others.
    Requested.assume("cases", limit.startsWith("as=") || limit.startsWith("nproc="), "");
    for (boolean byRoot : new boolean[] {true, false}) {
      String both = "--" + limit + ":" + limit.substring(limit.indexOf('=') + 1);
      try (Installation pmfs = under(List.of("prlimit", both), byRoot)) {
        if (byRoot && limit.startsWith("nproc")) {
          continue;
        }
        for (String option : List.of("--no-nested", "--writable")) {
          String[] line = pmfs.mountArguments(pmfs.directory("source"), pmfs.mountpoint(), option);
          Command refused = pmfs.run(line).expect(5);
          assertThat(refused.out()).isEmpty();
          assertThat(refused.err().lines()).hasSize(1);
          assertThat(refused.err()).contains("pmfs mount needs ", "raise ");
          assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
        }
      }
    }
  }
}
