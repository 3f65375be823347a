package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Mounts by an account without privileges, through fusermount3. */
final class UserMountIT {
  private static final String USER = "pmfs-it-" + ProcessHandle.current().pid();
  private static final Path FUSE = Path.of("/dev/fuse");

  private int fuseMode = -1;
  private Scratch code;
  private Installation pmfs;
  private List<String> asUser;
  private Dataset dataset;

  @BeforeEach
  void becomeAble() {
    Machine.requireFuse();
    Machine.requireRoot();
    Machine.requireCommand("useradd");
    Machine.requireCommand("setpriv");
    Machine.requireCommand("fusermount3");
    Command.run("useradd", "--no-create-home", "--shell", "/bin/sh", USER).expect(0);
    String uid = Command.run("id", "-u", USER).expect(0).out().strip();
    String gid = Command.run("id", "-g", USER).expect(0).out().strip();
    asUser = OtherUser.prefix(uid, gid);
    fuseMode = Posix.stat(FUSE.toString()).permissions();
    chmod(FUSE, 0666);
    code = new Scratch();
    pmfs = new Installation(copyOfLauncher(), asUser);
    pmfs.giveTo(Integer.parseInt(uid), Integer.parseInt(gid));
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(20, 10_000));
  }

  /** A checkout may lie where other users do not get to, as below /root. */
  private Path copyOfLauncher() {
    Path launcher = Installation.launcherOfCheckout();
    Path scripts = code.directory("scripts");
    Command.run("cp", launcher.toString(), scripts.toString()).expect(0);
    Path application = launcher.resolveSibling("../cli/target/pmfs").normalize();
    if (Files.exists(application)) {
      Path target = code.directory("cli/target");
      Command.run("cp", "-r", application.toString(), target.toString()).expect(0);
    }
    return scripts.resolve(launcher.getFileName());
  }

  private static void chmod(Path path, int mode) {
    Posix.check(Posix.result(Posix.LIBC.chmod(Posix.c(path.toString()), mode)));
  }

  @AfterEach
  void putBack() {
    try {
      if (pmfs != null) {
        pmfs.close();
      }
      if (code != null) {
        code.close();
      }
    } finally {
      if (fuseMode >= 0) {
        chmod(FUSE, fuseMode);
        Command.run("userdel", USER).expect(0);
      }
    }
  }

  private Command byUser(String... line) {
    List<String> all = new ArrayList<>(asUser);
    all.addAll(List.of(line));
    return Command.run(all.toArray(String[]::new));
  }

  @Test
  void mount_byUser_servesThatUserAndNobodyElse() {
    String source = dataset.root().toString();
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      String mountpoint = mount.mountpoint().toString();
      byUser("diff", "-r", source, mountpoint).expect(0);
      assertThat(Mounts.options(mount.mountpoint()))
          .contains("nosuid")
          .contains("nodev")
          .doesNotContain("allow_other");
      String file = mountpoint + "/" + dataset.items().get(0).name();
      for (String[] line : new String[][] {{"ls", mountpoint}, {"cat", file}}) {
        Command refused = OtherUser.run(line);
        assertThat(refused.exit()).as("%s", refused).isNotEqualTo(0);
        assertThat(refused.err()).contains("Permission denied");
      }
      // Not even root, who looks at it here.
      assertThat(Posix.outcome(Posix.statOutcome(file, 0))).isEqualTo("EACCES");
      mount.awaitCopies(dataset.items().size());
    }
  }

  @Test
  void mount_byUser_refusesWhatTheSourceRefuses() {
    Path secret = dataset.root().resolve(dataset.items().get(0).name());
    chmod(secret, 0600);
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      String file = mount.path(dataset.items().get(0).name());
      Command refused = byUser("cat", file);
      assertThat(refused.exit()).as("%s", refused).isNotEqualTo(0);
      assertThat(refused.err()).contains("Permission denied");
      byUser("cat", mount.path(dataset.items().get(1).name())).expect(0);
    }
  }

  @Test
  void kill9_ofUsersDaemon_nextMountServes() {
    pmfs.mount(dataset.root()).kill9();
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      byUser("diff", "-r", dataset.root().toString(), mount.mountpoint().toString()).expect(0);
    }
  }
}
