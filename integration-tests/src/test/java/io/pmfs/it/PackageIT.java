package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The Debian package, installed by dpkg on a clean Debian: {@code scripts/package --test}. */
@Tag("docker")
@OnRequest(value = "package", what = "packages in a clean Debian")
final class PackageIT extends PackageContract {
  private static final String MAKE_NEWER =
      """
      set -e
      dpkg-deb -R /pmfs.deb /newer
      cd /newer
      sed -i 's/^Version: .*/Version: 9.0/' DEBIAN/control
      rm DEBIAN/md5sums
      echo '# of 9.0' >> etc/pmfs/pmfs.toml
      cd usr
      """
          + RENAME_JARS
          + "dpkg-deb -Znone -b /newer /newer.deb";

  /** Prints the links of all pages that lead to no file. */
  private static final String FIND_BROKEN_LINKS =
      """
      cd /usr/share/doc/pmfs
      find -L . -name '*.md' | while read -r page; do
        grep -oE '\\]\\([a-zA-Z0-9_./-]+' "$page" | cut -c 3- | grep -v '^https$' | while read -r link; do
          [ -e "${page%/*}/$link" ] || echo "$page: $link"
        done
      done
      """;

  PackageIT() {
    super(".deb", "", "dpkg -i /pmfs.deb");
  }

  @Override
  String upgrade() {
    machine.expect(MAKE_NEWER);
    return machine.expect("dpkg -i --force-confdef --force-confold /newer.deb");
  }

  @Override
  String remove() {
    return machine.expect("dpkg -r pmfs");
  }

  @Override
  void purge() {
    assertThat(machine.expect("ls /etc/pmfs /etc/logrotate.d")).contains("pmfs.toml", "pmfs");
    machine.expect("dpkg -P pmfs");
  }

  @Test
  void install_bringsPagesAndCompletion() {
    assertThat(machine.expect("dpkg -V pmfs; dpkg -s pmfs")).contains("install ok installed");
    assertThat(
            machine.expect(
                "for c in mount stage doctor; do man -w pmfs-$c; done; man -w mount.pmfs"))
        .hasLineCount(4);
    assertThat(
            machine.expect(
                "cd / && . /usr/share/bash-completion/completions/pmfs && complete -p pmfs"))
        .contains("_complete_pmfs");
    assertThat(machine.expect("pmfs config --config /etc/pmfs/pmfs.toml")).contains("keep-free");
  }

  @Test
  void install_bringsTheDocumentation() {
    assertThat(
            machine.expect(
                "cd /usr/share/doc/pmfs && ls README.md CHANGELOG.md LICENSE THIRD-PARTY.txt"
                    + " components.cdx.json docs/README.md docs/usage.md"
                    + " docs/figures/overview.svg"))
        .hasLineCount(8);
    assertThat(machine.expect(FIND_BROKEN_LINKS)).isEmpty();
  }

  @Test
  void tarWithJava_unpackedByAUser_needsNoJava() throws IOException {
    machine.copyIn(CleanDebian.built("-java.tar.gz", "scripts/package --java JDK"), "/pmfs.tar.gz");
    machine.expect(
        "useradd -m ada && chmod 644 /pmfs.tar.gz && rm -r /usr/lib/jvm"
            + " && stat -c %a /dev/fuse >/fuse.mode && chmod 666 /dev/fuse");

    expectOfAda("! command -v java && tar -xzf /pmfs.tar.gz && ln -s pmfs-*/bin/pmfs pmfs");
    assertThat(expectOfAda("./pmfs doctor"))
        .containsPattern("ok +java .* at /home/ada/pmfs-.*/lib/pmfs/runtime");
    expectOfAda("pmfs-*/lib/pmfs/bin/archive-classes && test -s pmfs-*/lib/pmfs/classes.jsa");
    expectOfAda("mkdir mnt && ./pmfs mount --tier ssd:tier --keep-free 0 /source mnt");
    expectOfAda("cmp /source/numbers mnt/numbers && ./pmfs status mnt && ./pmfs bugreport");
    assertThat(expectOfAda("tar -xzf pmfs-bugreport-*.tar.gz && cat pmfs-bugreport-*/problems.txt"))
        .isEqualTo("none\n");
    expectOfAda("./pmfs umount mnt");
    machine.expect("chmod $(cat /fuse.mode) /dev/fuse");
    machine.awaitNoDaemon();
  }

  private String expectOfAda(String line) {
    return machine.expect(
        "cd /home/ada && setpriv --reuid=ada --regid=ada --init-groups env -i HOME=/home/ada"
            + " PATH=/usr/bin:/bin bash -ec '"
            + line
            + "'");
  }

  @Test
  void mount_byCommandHelperAndFstab_serves() {
    machine.expect("pmfs mount --tier ssd:/var/tier --keep-free 0 /source /mnt/a");
    machine.assertServes("/mnt/a");
    machine.expect("pmfs umount /mnt/a");

    machine.expect("mount -t pmfs -o " + OPTIONS + ",noexec /source /mnt/a");
    machine.assertServes("/mnt/a");
    assertThat(machine.expect("findmnt -no OPTIONS /mnt/a"))
        .contains("ro", "nosuid", "nodev", "noexec");
    machine.expect("umount /mnt/a");
    machine.awaitNoDaemon();

    machine.expect(
        "echo '/source /mnt/b pmfs defaults,_netdev,nofail,x-systemd.requires=x,"
            + OPTIONS
            + " 0 0' >>/etc/fstab");
    machine.expect("mount -a && mount -a");
    machine.assertServes("/mnt/b");
    assertThat(machine.expect("findmnt -n -t fuse.pmfs | wc -l")).isEqualTo("1\n");
    machine.expect("umount /mnt/b");
    machine.awaitNoDaemon();
    machine.expect("sed -i 's/ pmfs / fuse.pmfs /' /etc/fstab && mount /mnt/b");
    machine.assertServes("/mnt/b");
    machine.expect("umount /mnt/b");
    machine.awaitNoDaemon();
  }

  @Test
  void mount_byHelper_failsAsMountDoes() {
    assertThat(machine.run("mount -t pmfs -o teir=x /source /mnt/a"))
        .satisfies(c -> assertThat(c.exit()).isEqualTo(1))
        .satisfies(c -> assertThat(c.err()).contains("did you mean --tier"));
    assertThat(machine.run("mount -t pmfs /nowhere /mnt/a").exit()).isEqualTo(1);
    machine.expect("mount -s -t pmfs -o teir=x," + OPTIONS + " /source /mnt/a");
    machine.assertServes("/mnt/a");
    machine.expect("mount -f -t pmfs /source /mnt/b && ! mountpoint -q /mnt/b");
  }

  @Test
  void mount_ofUser_isThatUsers() {
    machine.expect("useradd -m ada && install -d -o ada /var/tier /var/state");
    machine.expect("mount -t pmfs -o run-as=ada," + OPTIONS + " /source /mnt/a");
    assertThat(
            machine.expect(
                "setpriv --reuid=ada --regid=ada --init-groups cmp /source/numbers /mnt/a/numbers"))
        .isEmpty();
    assertThat(machine.run("cat /mnt/a/numbers").exit()).as("root").isNotZero();
    machine.expect("umount /mnt/a");
    machine.awaitNoDaemon();

    machine.expect(
        "echo '/source /mnt/a pmfs noauto,user,tier=ssd:/var/tier,keep-free=0"
            + " 0 0' >>/etc/fstab");
    machine.expect(
        "chown ada /mnt/a && chmod 4755 /usr/bin/mount && stat -c %a /dev/fuse >/fuse.mode && chmod"
            + " 666 /dev/fuse");
    machine.expect(
        "setpriv --reuid=ada --regid=ada --init-groups env HOME=/home/ada mount /mnt/a; status=$?;"
            + " chmod $(cat /fuse.mode) /dev/fuse; exit $status");
    machine.expect(
        "setpriv --reuid=ada --regid=ada --init-groups cmp /source/numbers /mnt/a/numbers");
    machine.expect(
        "setpriv --reuid=ada --regid=ada --init-groups env HOME=/home/ada pmfs umount /mnt/a");
  }

  @Test
  void run_fromThePackage_runsOnAMountAndLeavesNone() {
    machine.expect(
        "pmfs run --source /source --tier ssd:/var/tier --keep-free 0"
            + " --stage -- sh -c 'cmp /source/numbers \"$PMFS_MOUNT\"/numbers && findmnt"
            + " \"$PMFS_MOUNT\"'");
    assertThat(
            machine.run("pmfs run --source /source --tier ssd:/var/tier -- sh -c 'exit 9'").exit())
        .isEqualTo(9);
    assertThat(machine.expect("findmnt -n -t fuse.pmfs | wc -l")).isEqualTo("0\n");
    machine.awaitNoDaemon();
  }

  /**
   * As slurmd calls them, with what it puts into the environment; SlurmPrologueIT has a real one.
   */
  @Test
  void slurmScripts_fromThePackage_mountAndUnmount() {
    machine.expect("useradd -m ada && echo 'OPTIONS=(--keep-free 0)' >/etc/pmfs/job.conf");
    String job =
        "env -i SLURM_JOB_ID=7 SLURM_JOB_USER=ada SLURM_JOB_UID=$(id -u ada)"
            + " SLURM_JOB_COMMENT=pmfs:source=/source /usr/lib/pmfs/slurm/";
    machine.expect(job + "prolog.d/50-pmfs");
    String mountpoint = machine.expect("findmnt -n -o TARGET -t fuse.pmfs").strip();
    assertThat(machine.expect(job + "task_prolog"))
        .contains("export PMFS_MOUNT=" + mountpoint + "\n");
    machine.expect(
        "setpriv --reuid=ada --regid=ada --init-groups cmp /source/numbers "
            + mountpoint
            + "/numbers");
    machine.expect(job + "epilog.d/50-pmfs");
    assertThat(machine.expect("findmnt -n -t fuse.pmfs | wc -l")).isEqualTo("0\n");
    machine.awaitNoDaemon();
  }

  @Test
  void bugreport_fromThePackage_isWhole() {
    machine.expect("cd /root && pmfs bugreport && tar -xzf pmfs-bugreport-*.tar.gz");
    assertThat(machine.expect("cat ~/pmfs-bugreport-*/problems.txt")).isEqualTo("none\n");
  }
}
