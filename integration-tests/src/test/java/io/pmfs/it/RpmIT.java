package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The RPM, installed by rpm on a clean Debian that has what it requires: {@code scripts/package
 * --test}. The packages that it requires have other names there, so rpm does not look for them.
 */
@Tag("docker")
@OnRequest(value = "package", what = "the RPM in a clean Debian")
final class RpmIT extends PackageContract {
  private static final String MAKE_NEWER =
      """
      set -e
      mkdir -p /newer/target/documents /newer/src/main/deb /newer/tree/pmfs
      cd /newer/tree/pmfs
      tar -xzf /pmfs.tar.gz --strip-components=1
      """
          + RENAME_JARS
          + """
            tar -cf - -C /newer/tree pmfs | gzip -1 >/newer/target/pmfs-9.0-linux-amd64-arm64.tar.gz
            (cat /etc/pmfs/pmfs.toml && echo '# of 9.0') >/newer/target/documents/pmfs.toml
            cp /etc/logrotate.d/pmfs /newer/src/main/deb/logrotate
            rpmbuild -bb --quiet --define 'made /newer/target' --define 'program_version 9.0' --define '_topdir /newer/rpm' /pmfs.spec
            mv /newer/rpm/RPMS/*/*.rpm /newer.rpm
            """;

  RpmIT() {
    super(".rpm", "rpm", "rpm -i --nodeps /pmfs.rpm");
  }

  @Override
  String upgrade() throws IOException {
    machine.copyIn(CleanDebian.built("64.tar.gz", "scripts/package"), "/pmfs.tar.gz");
    machine.copyIn(
        Installation.launcherOfCheckout()
            .resolve("../../distribution/src/main/rpm/pmfs.spec")
            .normalize(),
        "/pmfs.spec");
    machine.expect(MAKE_NEWER);
    String out = machine.expect("rpm -U --nodeps /newer.rpm 2>&1");
    assertThat(machine.expect("tail -n 1 /etc/pmfs/pmfs.toml.rpmnew")).isEqualTo("# of 9.0\n");
    return out;
  }

  @Override
  String remove() {
    return machine.expect("rpm -e pmfs 2>&1");
  }

  /** As docs/installation.md says. */
  @Override
  void purge() {
    assertThat(machine.expect("tail -n 1 /etc/pmfs/pmfs.toml.rpmsave"))
        .isEqualTo("# of this machine\n");
    machine.expect("rm -r /etc/pmfs /run/pmfs /var/log/pmfs");
  }

  @Test
  void install_isWhatThePackageSays() {
    assertThat(machine.run("rpm -V --nodeps pmfs").out()).isEmpty();
    assertThat(machine.expect("rpm -qc pmfs"))
        .isEqualTo("/etc/logrotate.d/pmfs\n/etc/pmfs/pmfs.toml\n");
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
}
