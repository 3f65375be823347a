package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
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
}
