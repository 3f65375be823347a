package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** {@code pmfs run --private} by a user: in namespaces of its own, also where no fusermount is. */
final class PrivateMountIT {
  private static final String KILL_DAEMON =
      "pid=$(sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/' \"$PMFS_RUNTIME_DIR\"/*.json) && kill -9 $pid";

  /** A new namespace must not keep the mounts of other tests. */
  private static final String ALONE =
      "awk '/ fuse.pmfs / { print $5 }' /proc/self/mountinfo | xargs -r -n 1 umount -i -l;"
          + " exec \"$@\"";

  private Scratch code;
  private Account user;
  private Scratch place;
  private Path launcher;
  private Dataset dataset;
  private String source;

  @BeforeEach
  void becomeAble() {
    Machine.requireFuse();
    Machine.requireRoot();
    Machine.requireCommand("useradd");
    Machine.requireCommand("setpriv");
    code = new Scratch();
    user = new Account(code.directory("home").toString());
    user.openFuse();
    launcher = Installation.launcherForAll(code);
    place = new Scratch();
    user.own(place.root().toString());
    for (String name : List.of("run", "tier")) {
      Path directory = place.directory(name);
      user.own(directory.toString());
      chmod(directory, 0700);
    }
    dataset = Dataset.create(place.directory("source"), Dataset.sizes(20, 10_000));
    source = dataset.root().toString();
  }

  private static void chmod(Path path, int mode) {
    Posix.check(Posix.result(Posix.LIBC.chmod(Posix.c(path.toString()), mode)));
  }

  @AfterEach
  void remove() {
    try {
      user.awaitNoProcess();
    } finally {
      place.close();
      user.close();
      code.close();
    }
  }

  private Map<String, String> environment() {
    Map<String, String> environment = new HashMap<>();
    environment.put("PMFS_RUNTIME_DIR", place.root().resolve("run").toString());
    environment.put("PMFS_TIER", "ssd:" + place.root().resolve("tier"));
    environment.put("PMFS_KEEP_FREE", "0");
    environment.put("PMFS_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1");
    environment.put("HOME", code.root().resolve("home").toString());
    return environment;
  }

  /** Programs without fusermount. */
  private String path() {
    Path programs = place.root().resolve("bin");
    if (!Files.exists(programs)) {
      place.directory("bin");
      Command.run(
              "sh",
              "-euc",
              "for each in /usr/sbin/* /bin/* /usr/bin/*; do ln -sf -- \"$each\" \"$0\"; done;"
                  + " rm -f -- \"$0\"/fusermount*",
              programs.toString())
          .expect(0);
    }
    return programs.toString();
  }

  private String[] line(List<String> options, String script) {
    List<String> line = new ArrayList<>(List.of(launcher.toString(), "run", "--source", source));
    line.addAll(options);
    line.addAll(List.of("--", "sh", "-c", script, source));
    return line.toArray(String[]::new);
  }

  private List<String> asUser(String... command) {
    List<String> line =
        new ArrayList<>(List.of("unshare", "--mount", "sh", "-c", ALONE, "-", "setpriv"));
    line.addAll(List.of("--reuid=" + user.uid(), "--regid=" + user.gid(), "--init-groups"));
    line.addAll(List.of(command));
    return line;
  }

  private Command byUser(Map<String, String> environment, String... command) {
    return Command.run(environment, Command.DEADLINE, asUser(command));
  }

  private String name(int item) {
    return dataset.items().get(item).name();
  }

  private Command run(List<String> options, String script) {
    return byUser(environment(), line(options, script));
  }

  private void assertNothingLeft() {
    user.awaitNoProcess();
    assertThat(Mounts.below(place.root())).isEmpty();
    assertThat(Installation.files(place.root().resolve("run")))
        .noneMatch(f -> f.toString().matches(".*(\\.sock|\\.json|/session\\..*)"));
  }

  @Test
  @OnRequest("cases")
  void run_withoutFusermount_showsTheMountAtTheSourcesPath() {
    Map<String, String> environment = environment();
    environment.put("PATH", path());
    Command ran =
        byUser(
            environment,
            line(
                List.of("--stage"),
                "cd \"$0\" && find . -type f -exec sha256sum {} + | sort && test \"$PMFS_MOUNT\" ="
                    + " \"$0\" && id -u && id -g && grep -c \" $0 .* fuse.pmfs \""
                    + " /proc/self/mountinfo; exit 7"));
    ran.expect(7);
    Command direct =
        Command.run("sh", "-c", "cd \"$0\" && find . -type f -exec sha256sum {} + | sort", source);
    assertThat(ran.out()).isEqualTo(direct.out() + user.uid() + "\n" + user.gid() + "\n" + "1\n");
    assertThat(ran.err())
        .contains("fusermount3: not found: mounting as with --private", "staged 20 files");
    assertNothingLeft();
  }

  /** The kernel does not know the user's other groups in the namespace. */
  @Test
  void run_fileOfAnotherGroup_isReadableIfTheUserIsInIt() {
    Path ours = dataset.root().resolve(dataset.items().get(0).name());
    Path others = dataset.root().resolve(dataset.items().get(1).name());
    Path shut = dataset.root().resolve(dataset.items().get(2).name());
    Command.run("chown", "0:" + user.otherGroup(), ours.toString(), shut.toString()).expect(0);
    Command.run("chown", "0:0", others.toString()).expect(0);
    chmod(ours, 0640);
    chmod(others, 0640);
    chmod(shut, 0604);
    String look =
        "cd \"$0\"; for each in %s %s %s; do cat $each >/dev/null 2>&1 && test -r $each; echo $?;"
                .formatted(name(0), name(1), name(2))
            + " stat -c %a $each; done";
    String expected = "0\n640\n1\n640\n1\n604\n";
    assertThat(byUser(Map.of(), "sh", "-c", look, source).out()).isEqualTo(expected);
    assertThat(run(List.of("--private"), look).expect(0).out()).isEqualTo(expected);
    // What the namespace hid does not stay.
    String owners = "stat -c %u:%g \"$PMFS_MOUNT\"/" + name(0);
    assertThat(run(List.of(), owners + "; " + look).expect(0).out())
        .isEqualTo("0:" + user.otherGroup() + "\n" + expected);
  }

  @Test
  void run_daemonIsKilled_commandWaitsForTheNextOne() {
    Command ran =
        run(
            List.of("--private"),
            "exec 5<\"$0\"/"
                + dataset.items().get(0).name()
                + "; "
                + KILL_DAEMON
                + "; cat <&5 | cmp - \"$0\"/"
                + dataset.items().get(0).name()
                + " && find \"$0\" -type f | sort | xargs cat | sha256sum");
    ran.expect(0);
    assertThat(ran.out())
        .isEqualTo(
            Command.run("sh", "-c", "find \"$0\" -type f | sort | xargs cat | sha256sum", source)
                .out());
    assertNothingLeft();
  }

  @Test
  void run_isKilled_commandKeepsItsDatasetAndNothingStays() throws Exception {
    Path go = place.root().resolve("go");
    Path out = place.root().resolve("out");
    String script =
        "echo $$ >%1$s.begun; while [ ! -e %1$s ]; do sleep 0.1; done; find \"$0\" -type f | sort | xargs cat | sha256sum >%2$s"
            .formatted(go, out);
    Process run = start(script, go);
    run.destroyForcibly().waitFor();
    Files.createFile(go);
    user.awaitNoProcess();
    assertThat(Files.readString(out))
        .isEqualTo(
            Command.run("sh", "-c", "find \"$0\" -type f | sort | xargs cat | sha256sum", source)
                .out());
    assertNothingLeft();
  }

  @Test
  @OnRequest("cases")
  void run_signal_isPassedOn() throws Exception {
    Path sign = place.root().resolve("sign");
    Process run =
        start(
            "trap 'exit 9' TERM; echo $$ >%s.begun; while :; do sleep 0.1; done".formatted(sign),
            sign);
    run.destroy();
    assertThat(run.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(run.exitValue()).isEqualTo(9);
    assertNothingLeft();
  }

  private Process start(String script, Path sign) throws IOException {
    Process run =
        Command.builder(environment(), asUser(line(List.of("--private"), script)))
            .redirectOutput(Redirect.DISCARD)
            .redirectError(Redirect.DISCARD)
            .start();
    Await.until(
        "the command began",
        Duration.ofMinutes(1),
        () -> Files.exists(Path.of(sign + ".begun")) || !run.isAlive());
    assertThat(run.isAlive()).isTrue();
    return run;
  }

  /** Each has a daemon and copies of its own, and they do not see each other's mounts. */
  @Test
  @OnRequest("cases")
  void run_whileAnotherRuns_bothSeeTheDataset() throws Exception {
    Path go = place.root().resolve("go");
    Path target = place.directory("target");
    String sum =
        "(cd \"$PMFS_MOUNT\" && find . -type f | sort | xargs cat) | sha256sum; find "
            + target
            + " -type f | wc -l; ";
    String expected =
        Command.run(
                    "sh",
                    "-c",
                    "(cd \"$0\" && find . -type f | sort | xargs cat) | sha256sum",
                    source)
                .out()
            + "%d\n";
    Process first =
        start(
            "echo $$ >%1$s.begun; while [ ! -e %1$s ]; do sleep 0.1; done; { %2$s } >%1$s.out"
                .formatted(go, sum),
            go);
    Command second =
        run(List.of("--private", "--mountpoint", target.toString()), "cd \"$0\" && " + sum);
    assertThat(second.expect(0).out()).isEqualTo(expected.formatted(20));
    Files.createFile(go);
    assertThat(first.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(Files.readString(Path.of(go + ".out"))).isEqualTo(expected.formatted(0));
    assertNothingLeft();
  }

  @Test
  @OnRequest("cases")
  void run_whereNamespacesAreForbidden_fails() throws IOException {
    Map<String, String> environment = environment();
    Path programs = Path.of(path());
    Files.delete(programs.resolve("unshare"));
    Files.writeString(
        programs.resolve("unshare"), "#!/bin/sh\necho unshare: forbidden >&2\nexit 1\n");
    chmod(programs.resolve("unshare"), 0755);
    environment.put("PATH", programs.toString());
    Command refused = byUser(environment, line(List.of("--private"), "echo ran"));
    refused.expect(125);
    assertThat(refused.out()).isEmpty();
    assertThat(refused.errorLines())
        .containsExactly(
            "pmfs: --private: no namespaces: unshare: forbidden; pmfs doctor says what is missing");
    Command direct =
        byUser(environment, line(List.of("--private", "--or-source"), "echo $PMFS_MOUNT"));
    assertThat(direct.expect(0).out()).isEqualTo(source + "\n");
    Command doctor = byUser(environment, launcher.toString(), "doctor");
    assertThat(doctor.out()).contains("run --private", "not possible: unshare: forbidden");
    assertThat(byUser(environment(), launcher.toString(), "doctor").out())
        .contains("possible for users");
  }
}
