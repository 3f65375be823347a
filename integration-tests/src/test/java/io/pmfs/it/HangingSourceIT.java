package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A writable mount whose source hangs, as the process that serves it is stopped. */
@Timeout(value = 180, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class HangingSourceIT {
  /** Each command may take so long, which is less than the source hangs. */
  private static final String LIMIT = "timeout -s KILL 15 ";

  @Installed(byRoot = true)
  private Installation pmfs;

  private static Command shell(MountedPmfs mount, String script) {
    return Command.run("sh", "-euc", "cd -- \"$1\"; " + script, "-", mount.mountpoint().toString());
  }

  @Test
  void source_thatHangs_isNotWaitedForByWhatTheNodeKnows() throws Exception {
    Path below = pmfs.directory("source");
    Files.writeString(below.resolve("unread"), "not here\n");
    try (NodeView view = new NodeView(below);
        MountedPmfs mount = pmfs.mount(below, "--writable", "--allow-other")) {
      String mountpoint = mount.mountpoint().toString();
      shell(mount, "mkdir out; echo one >out/a; echo two >out/b; ln -s a out/l").expect(0);
      pmfs.run("drain", mountpoint).expect(0);
      shell(mount, "ls -l . out; cat out/a out/b; readlink out/l; df .").expect(0);

      view.stop();
      try {
        Thread.sleep(1500); // What the kernel and the mount keep for a second is too old.
        goesOn(mount);
        endsWithItsProgram(mount);
        assertThat(pmfs.run("status", mountpoint).expect(4).err())
            .contains("has not answered since");
      } finally {
        view.go();
      }

      pmfs.run("drain", mountpoint).expect(0);
      pmfs.run("status", mountpoint).expect(0);
      shell(mount, "test \"$(cat unread)\" = 'not here'").expect(0);
      Command.run("diff", "-r", "--no-dereference", below.toString(), mountpoint).expect(0);
      assertThat(Files.readString(below.resolve("out/b"))).isEqualTo("two\nmore\n");
      assertThat(below.resolve("out/l")).doesNotExist();
    }
  }

  private static void goesOn(MountedPmfs mount) {
    for (String program :
        new String[] {
          "sh -c 'echo new >out/new'",
          "cat out/a",
          "stat out/b",
          "df .",
          "mkdir out/made",
          "sh -c 'echo inside >out/made/inside'",
          "readlink out/l",
          "ls -l . out",
          "sh -c 'echo more >>out/b'",
          "chmod 600 out/b",
          "mv out/a out/moved",
          "rm out/l",
          "cat out/moved out/new out/made/inside",
          "sh -c '! cat out/absent'",
        }) {
      shell(mount, LIMIT + program).expect(0);
    }
  }

  /** What only the source has is waited for, until the program is interrupted. */
  private static void endsWithItsProgram(MountedPmfs mount) {
    long begin = System.nanoTime();
    assertThat(shell(mount, "timeout -k 20 -s INT 3 cat unread").exit()).isEqualTo(124);
    Duration took = Duration.ofNanos(System.nanoTime() - begin);
    assertThat(took).isBetween(Duration.ofSeconds(3), Duration.ofSeconds(15));
  }

  /** The kernel holds the check of the mount back, too: the daemon is not at fault. */
  @Test
  void daemon_whoseRootIsNotKnown_isNotReplacedWhileTheSourceHangs() throws Exception {
    Path below = pmfs.directory("source");
    try (NodeView view = new NodeView(below);
        MountedPmfs mount = pmfs.mount(below, "--writable", "--allow-other")) {
      view.stop();
      Command created;
      try {
        created = shell(mount, "timeout -k 20 -s INT 35 sh -c 'echo one >first'");
      } finally {
        view.go();
      }
      assertThat(created.exit()).isEqualTo(124);
      for (Path file : Installation.files(pmfs.scratch().root().resolve("run"))) {
        if (file.toString().endsWith(".log")) {
          assertThat(Files.readString(file)).doesNotContain("starting another");
        }
      }
    }
  }

  @Test
  void run_whoseSourceHangsAtItsEnd_endsAndKeepsTheRest() throws Exception {
    Path below = pmfs.directory("source");
    Path signs = pmfs.directory("signs");
    Path output = signs.resolve("output");
    String command =
        "ls \"$PMFS_MOUNT\"; touch \"$0/begun\"; while [ ! -e \"$0/go\" ]; do sleep 0.1; done;"
            + " echo kept >\"$PMFS_MOUNT/kept\"";
    try (NodeView view = new NodeView(below)) {
      List<String> line = new ArrayList<>(List.of("run", "--writable", "--idle-timeout", "2s"));
      line.addAll(List.of("--source", below.toString(), "--tier", "ssd:" + pmfs.tier()));
      line.addAll(List.of("--mountpoint", pmfs.mountpoint().toString(), "--keep-free", "0", "--"));
      line.addAll(List.of("sh", "-euc", command, signs.toString()));
      Redirect errors = Redirect.to(output.toFile());
      Process run = pmfs.start(Redirect.DISCARD, errors, line.toArray(String[]::new));
      Await.until("it has begun", () -> Files.exists(signs.resolve("begun")) || !run.isAlive());
      view.stop();
      try {
        Files.createFile(signs.resolve("go"));
        assertThat(run.waitFor(150, TimeUnit.SECONDS)).as("ends").isTrue();
      } finally {
        view.go();
      }
      assertThat(Files.readString(output))
          .contains("kept for the next mount or pmfs drain --state");
      assertThat(run.exitValue()).isEqualTo(124);
      Path mark =
          Installation.files(pmfs.tier()).stream()
              .filter(file -> file.startsWith(pmfs.state()))
              .filter(file -> file.endsWith("not-at-the-source"))
              .findFirst()
              .orElseThrow();
      pmfs.run("drain", "--state", mark.resolveSibling(".").normalize().toString()).expect(0);
      assertThat(below.resolve("kept")).hasContent("kept\n");
    }
  }
}
