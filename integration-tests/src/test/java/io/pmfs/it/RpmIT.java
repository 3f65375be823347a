package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The RPM, installed by rpm on a clean Debian that has what it requires: {@code scripts/package
 * --test}. The packages that it requires have other names there, so rpm does not look for them.
 */
@Tag("docker")
@OnRequest(value = "package", what = "the RPM in a clean Debian")
final class RpmIT {
  private static final Duration SOON = Duration.ofSeconds(60);

  /** Builds it under a later version, whose own classes lie in jars of other names. */
  private static final String MAKE_NEWER =
      """
      set -e
      mkdir -p /newer/target/documents /newer/src/main/deb /newer/tree/pmfs
      cd /newer/tree/pmfs
      tar -xzf /pmfs.tar.gz --strip-components=1
      for jar in lib/pmfs/lib/{cli,daemon,settings,node-cache,cluster,shards,pack,writable,fs-core,fuse-mount,fuse-jnr,metadata,compression}-*.jar; do
        mv "$jar" "${jar%%-[0-9]*}-9.0.jar"
      done
      tar -cf - -C /newer/tree pmfs | gzip -1 >/newer/target/pmfs-9.0-linux-amd64-arm64.tar.gz
      (cat /etc/pmfs/pmfs.toml && echo '# of 9.0') >/newer/target/documents/pmfs.toml
      cp /etc/logrotate.d/pmfs /newer/src/main/deb/logrotate
      rpmbuild -bb --quiet --define 'made /newer/target' --define 'program_version 9.0' --define '_topdir /newer/rpm' /pmfs.spec
      mv /newer/rpm/RPMS/*/*.rpm /newer.rpm
      """;

  private CleanDebian machine;

  @BeforeEach
  void install() throws IOException {
    Containers.require();
    Path rpm = CleanDebian.built(".rpm", "scripts/package with rpmbuild");
    machine = CleanDebian.with("rpm");
    machine.copyIn(rpm, "/pmfs.rpm");
    machine.expect("rpm -i --nodeps /pmfs.rpm");
    machine.makeSource();
  }

  @AfterEach
  void remove() {
    if (machine != null) {
      machine.run("umount -a -l -t fuse.pmfs");
      machine.close();
    }
  }

  @Test
  void install_bringsAProgramThatRuns() {
    assertThat(machine.expect("pmfs --version")).startsWith("pmfs ");
    assertThat(machine.run("rpm -V --nodeps pmfs").out()).isEmpty();
    assertThat(machine.expect("MANPAGER=cat man pmfs-mount")).contains("--read-mode=MODE");
    machine.expect("test -s /usr/lib/pmfs/classes.jsa");
    machine.expect("systemd-analyze verify --man=no pmfs@mnt-a.service");
    machine.expect("logrotate -d /etc/logrotate.conf");
    assertThat(machine.expect("stat -c '%a %U' /run/pmfs /var/log/pmfs"))
        .isEqualTo("700 root\n700 root\n");
    assertThat(machine.expect("rpm -qc pmfs"))
        .isEqualTo("/etc/logrotate.d/pmfs\n/etc/pmfs/pmfs.toml\n");
    assertThat(machine.run("pmfs doctor").exit()).as("mounts here").isZero();
  }

  @Test
  void version_ofASnapshot_isOlderThanItsRelease() {
    String version = machine.expect("rpm -q --qf '%{VERSION}' pmfs");
    assertThat(
            machine.expect(
                "rpm --eval '%{lua:print(rpm.vercmp(\""
                    + version
                    + "\", \""
                    + version.replaceFirst("~.*", "")
                    + "\"))}'"))
        .isEqualTo(version.contains("~") ? "-1\n" : "0\n");
  }

  @Test
  void files_areThoseOfTheDebianPackage() throws IOException {
    machine.copyIn(CleanDebian.built(".deb", "scripts/package"), "/pmfs.deb");
    machine.expect(
        "dpkg-deb -x /pmfs.deb /deb && rm -r /deb/usr/share/lintian"
            + " && mv /deb/usr/share/zsh/vendor-completions /deb/usr/share/zsh/site-functions");
    machine.expect(
        "cd /deb && find . ! -type d -printf '%M %P %l\\n' | sort >/of.deb && [ -s /of.deb ]");
    machine.expect(
        "rpm -ql pmfs | while read -r f; do [ -d $f -a ! -L $f ] || find $f -printf '%M %p %l\\n';"
            + " done | sed 's, /, ,; / usr.lib.pmfs.classes.jsa /d' | sort >/of.rpm");
    assertThat(machine.run("diff /of.deb /of.rpm").out()).isEmpty();
    machine.expect("cd /deb && find . -type f | while read -r f; do cmp $f /$f || exit 1; done");
  }

  @Test
  void upgrade_whileMounted_goesOnAndIsTakenByPmfsUpgrade() throws IOException {
    machine.copyIn(CleanDebian.built("64.tar.gz", "scripts/package"), "/pmfs.tar.gz");
    machine.copyIn(
        Installation.launcherOfCheckout()
            .resolve("../../distribution/src/main/rpm/pmfs.spec")
            .normalize(),
        "/pmfs.spec");
    machine.expect(MAKE_NEWER);
    machine.expect("echo '# of this machine' >>/etc/pmfs/pmfs.toml");
    machine.expect(
        "mount -t pmfs -o tier=ssd:/var/tier,keep-free=0 /source /mnt/a"
            + " && cat /mnt/a/numbers >/dev/null");
    assertThat(machine.jarsOfDaemon()).doesNotContain("-9.0.jar", "deleted");
    machine.expect(
        "(while [ ! -e /stop ]; do cmp /source/d/x /mnt/a/d/x || exit 1; done; touch /stopped)"
            + " >/reader.log 2>&1 </dev/null &");

    assertThat(machine.expect("rpm -U --nodeps /newer.rpm 2>&1"))
        .contains("until you run: pmfs upgrade");
    assertThat(machine.expect("tail -n 1 /etc/pmfs/pmfs.toml")).isEqualTo("# of this machine\n");
    assertThat(machine.expect("tail -n 1 /etc/pmfs/pmfs.toml.rpmnew")).isEqualTo("# of 9.0\n");
    assertThat(machine.expect("ls /usr/lib/pmfs/lib/cli-*")).endsWith("/cli-9.0.jar\n");
    machine.expect("test -s /usr/lib/pmfs/classes.jsa");
    assertThat(machine.jarsOfDaemon())
        .as("the old ones, gone on")
        .contains("deleted")
        .doesNotContain("-9.0.jar");
    machine.expect("pmfs status /mnt/a && pmfs stage /mnt/a && pmfs verify /mnt/a");

    machine.expect("pmfs upgrade /mnt/a");
    assertThat(machine.jarsOfDaemon()).contains("-9.0.jar").doesNotContain("deleted");
    machine.assertServes("/mnt/a");
    machine.expect("touch /stop");
    Await.until("the reader ended well", SOON, () -> machine.run("test -e /stopped").exit() == 0);
    machine.expect("pmfs umount /mnt/a");
    machine.awaitNoDaemon();
  }

  @Test
  void remove_whileMounted_leavesReadersAlone_andKeepsWhatWasChanged() {
    machine.expect("pmfs mount --tier ssd:/var/tier --keep-free 0 /source /mnt/a");
    machine.expect("echo '# of this machine' >>/etc/pmfs/pmfs.toml");

    assertThat(machine.expect("rpm -e pmfs 2>&1")).contains("/mnt/a");
    machine.assertServes("/mnt/a");
    assertThat(machine.run("command -v pmfs").exit()).isNotZero();
    assertThat(machine.expect("tail -n 1 /etc/pmfs/pmfs.toml.rpmsave"))
        .isEqualTo("# of this machine\n");
    machine.expect("umount /mnt/a");
    machine.awaitNoDaemon();

    // As docs/installation.md says.
    machine.expect("rm -r /etc/pmfs /run/pmfs /var/log/pmfs");
    assertThat(
            machine.expect(
                "find / -xdev -path /proc -prune -o -name '*pmfs*' -print | grep -v"
                    + " '^/pmfs.rpm$\\|^/tmp' || true"))
        .isEmpty();
  }
}
