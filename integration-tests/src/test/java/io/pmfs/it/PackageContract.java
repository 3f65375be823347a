package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What each package does that {@code scripts/package} builds, on a clean Debian. */
abstract class PackageContract {
  static final String OPTIONS = "tier=ssd:/var/tier,keep-free=0";

  /** Below a prefix: gives pmfs's own jars the names of a later version. */
  static final String RENAME_JARS =
      """
      for jar in lib/pmfs/lib/{cli,daemon,settings,node-cache,cluster,shards,pack,writable,fs-core,fuse-mount,fuse-jnr,metadata,compression}-*.jar; do
        mv "$jar" "${jar%%-[0-9]*}-9.0.jar"
      done
      """;

  private static final Duration SOON = Duration.ofSeconds(60);

  private final String ending;
  private final String packages;
  private final String installation;
  @AutoClose CleanDebian machine;

  /** Of a file with this ending, which these packages of Debian and this command install. */
  PackageContract(String ending, String packages, String installation) {
    this.ending = ending;
    this.packages = packages;
    this.installation = installation;
  }

  @BeforeEach
  void install() throws IOException {
    Containers.require();
    Path file = CleanDebian.built(ending, "scripts/package");
    machine = CleanDebian.with(packages);
    machine.copyIn(file, "/pmfs" + ending);
    machine.expect(installation);
    machine.makeSource();
  }

  /** Installs the same as version 9.0; answers what that printed. */
  abstract String upgrade() throws IOException;

  /** Answers what it printed. */
  abstract String remove();

  /** Checks that the changed configuration was kept, and removes the rest. */
  abstract void purge();

  @Test
  void install_bringsAProgramThatRuns() {
    assertThat(machine.expect("pmfs --version")).startsWith("pmfs ");
    assertThat(machine.expect("MANPAGER=cat man pmfs-mount")).contains("--read-mode=MODE");
    machine.expect("test -s /usr/lib/pmfs/classes.jsa");
    machine.expect("systemd-analyze verify --man=no pmfs@mnt-a.service");
    machine.expect("logrotate -d /etc/logrotate.conf");
    assertThat(machine.expect("stat -c '%a %U' /run/pmfs /var/log/pmfs"))
        .isEqualTo("700 root\n700 root\n");
    assertThat(machine.run("pmfs doctor").exit()).as("mounts here").isZero();
  }

  @Test
  void upgrade_whileMounted_goesOnAndIsTakenByPmfsUpgrade() throws IOException {
    machine.expect("echo '# of this machine' >>/etc/pmfs/pmfs.toml");
    machine.expect(
        "mount -t pmfs -o " + OPTIONS + " /source /mnt/a && cat /mnt/a/numbers >/dev/null");
    assertThat(machine.jarsOfDaemon()).doesNotContain("-9.0.jar", "deleted");
    machine.expect(
        "(while [ ! -e /stop ]; do cmp /source/d/x /mnt/a/d/x || exit 1; done; touch /stopped)"
            + " >/reader.log 2>&1 </dev/null &");

    assertThat(upgrade()).contains("until you run: pmfs upgrade");
    assertThat(machine.expect("tail -n 1 /etc/pmfs/pmfs.toml")).isEqualTo("# of this machine\n");
    assertThat(machine.expect("ls /usr/lib/pmfs/lib/cli-*")).endsWith("/cli-9.0.jar\n");
    machine.expect("test -s /usr/lib/pmfs/classes.jsa");
    assertThat(machine.jarsOfDaemon())
        .as("the old ones, gone on")
        .contains("deleted")
        .doesNotContain("-9.0.jar");
    machine.expect(
        "seq 50000 >/source/later && pmfs status /mnt/a && pmfs stage /mnt/a && pmfs verify"
            + " /mnt/a");
    machine.assertServes("/mnt/a");

    machine.expect("pmfs upgrade /mnt/a");
    assertThat(machine.jarsOfDaemon()).contains("-9.0.jar").doesNotContain("deleted");
    machine.assertServes("/mnt/a");
    machine.expect("touch /stop");
    Await.until("the reader ended well", SOON, () -> machine.run("test -e /stopped").exit() == 0);
    machine.expect("pmfs umount /mnt/a");
    machine.awaitNoDaemon();
  }

  @Test
  void remove_whileMounted_leavesReadersAlone_andPurgeOnlyWhatIsTheUsers() {
    machine.expect("pmfs mount --tier ssd:/var/tier --keep-free 0 /source /mnt/a");
    machine.expect("echo '# of this machine' >>/etc/pmfs/pmfs.toml");

    assertThat(remove()).contains("/mnt/a");
    machine.assertServes("/mnt/a");
    assertThat(machine.run("command -v pmfs").exit()).isNotZero();
    machine.expect("umount /mnt/a");
    machine.awaitNoDaemon();

    purge();
    assertThat(
            machine.expect(
                "find / -xdev -path /proc -prune -o -name '*pmfs*' -print | grep -v"
                    + " '^/pmfs[.][a-z]*$\\|^/tmp'"))
        .as("the user's own list of places of copies")
        .isEqualTo("/root/.local/state/pmfs\n");
  }
}
