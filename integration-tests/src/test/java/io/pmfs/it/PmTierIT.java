package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A tier of kind pm where there is no persistent memory. */
final class PmTierIT {
  private static final Pattern REASON =
      Pattern.compile("(emulated|not DAX|not persistent memory): \\S+");

  @Installed private Installation pmfs;
  private Path source;

  @BeforeEach
  void makeSource() {
    source = Dataset.create(pmfs.directory("source"), 1000).root();
  }

  private String tier() {
    return "pm:" + pmfs.tier();
  }

  private void assertRefused(Command command) {
    command.expect(2);
    assertThat(command.errorLines()).as("%s", command).hasSize(1);
    assertThat(command.err())
        .contains(pmfs.tier().toString(), "--require-dax")
        .containsPattern(REASON)
        .doesNotContain("Exception");
    assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
  }

  @Test
  void mount_ofDiskAsPm_warnsOnceAndServes() {
    Command mounted =
        pmfs.run(pmfs.mountArguments(source, pmfs.mountpoint(), "--tier", tier())).expect(0);
    try {
      assertThat(mounted.errorLines()).as("%s", mounted).hasSize(1);
      assertThat(mounted.err()).contains(pmfs.tier().toString()).containsPattern(REASON);
      assertThat(Posix.readByte(pmfs.mountpoint() + "/part-000/file-00000")).isEqualTo(1);
      String mountpoint = pmfs.mountpoint().toString();
      Status status = Status.parse(pmfs.run("status", mountpoint, "--json").expect(0).out());
      assertThat(status.flag("tiers.0.dax.real")).isFalse();
      assertThat(status.text("tiers.0.dax.reason")).containsPattern(REASON);
      assertThat(status.text("readMode")).isNotEqualTo("passthrough");
      assertThat(pmfs.run("status", mountpoint).expect(0).out())
          .contains(status.text("tiers.0.dax.reason"));
    } finally {
      pmfs.run("umount", pmfs.mountpoint().toString()).expect(0);
    }
  }

  @Test
  void mount_ofTmpfsAsPm_isCalledEmulated() {
    Machine.requireRoot();
    Path memory = pmfs.scratch().tmpfs("memory", "size=16M");
    try (MountedPmfs mount = pmfs.mount(source, "--tier", "pm:" + memory)) {
      assertThat(mount.status().text("tiers.0.dax.reason")).isEqualTo("emulated: tmpfs");
    }
  }

  @Test
  void mount_requiringDax_isRefusedWhereverThatIsSaid() throws IOException {
    assertRefused(
        pmfs.run(
            pmfs.mountArguments(source, pmfs.mountpoint(), "--tier", tier(), "--require-dax")));
    pmfs.environment("PMFS_REQUIRE_DAX", "true");
    assertRefused(pmfs.run(pmfs.mountArguments(source, pmfs.mountpoint(), "--tier", tier())));
    pmfs.environment("PMFS_REQUIRE_DAX", "");
    Path file = pmfs.scratch().root().resolve("pmfs.toml");
    Files.writeString(file, "require-dax = true\n");
    assertRefused(
        pmfs.run(
            pmfs.mountArguments(
                source, pmfs.mountpoint(), "--tier", tier(), "--config", file.toString())));
  }

  @Test
  void mount_requiringDaxWithoutPmTier_serves() {
    try (MountedPmfs mount = pmfs.mount(source, "--require-dax")) {
      assertThat(Posix.readByte(mount.path("part-000/file-00000"))).isEqualTo(1);
    }
  }
}
