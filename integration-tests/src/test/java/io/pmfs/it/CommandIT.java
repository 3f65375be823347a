package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the commands answer to wrong and to awkward requests. */
final class CommandIT {
  @Installed private Installation pmfs;
  private Path source;

  @BeforeEach
  void makeSource() {
    source = Dataset.create(pmfs.directory("source"), 1000).root();
  }

  private Command tryMount(Path from, Path mountpoint, String... options) {
    return pmfs.run(pmfs.mountArguments(from, mountpoint, options));
  }

  private void assertRefused(Command command, int exit, Object culprit) {
    command.expect(exit);
    assertThat(command.errorLines()).as("%s", command).hasSize(1);
    assertThat(command.err()).contains(culprit.toString()).doesNotContain("Exception");
    assertThat(Mounts.below(pmfs.scratch().root())).isEmpty();
  }

  /** Nothing of it is in a file or in the environment. */
  @Test
  void doctor_ofAMount_goesByWhatItWasMountedWith() throws IOException {
    try (MountedPmfs mount = pmfs.mount(source, "--keep-free", "0")) {
      String mountpoint = mount.mountpoint().toString();
      assertThat(pmfs.run("doctor", mountpoint).expect(0).out())
          .containsPattern("ok +mount +" + mountpoint + ": served by pid " + mount.daemon())
          .containsPattern("ok +source +" + source + ": answers")
          .containsPattern("ok +tier ssd +" + pmfs.tier() + ": .* free")
          .containsPattern("ok +state +" + pmfs.tier() + "/state: .* free");

      Path away = Files.move(source, source.resolveSibling("away"));
      assertThat(pmfs.run("doctor", mountpoint).expect(5).out())
          .containsPattern("fail +source +" + source + ": missing");
      Files.move(away, source);
    }
  }

  @Test
  void mount_ofMissingSource_isRefused() {
    Path missing = pmfs.scratch().root().resolve("missing");
    assertRefused(tryMount(missing, pmfs.mountpoint()), 2, missing);
  }

  @Test
  @OnRequest("cases")
  void mount_ofFile_isRefused() throws IOException {
    Path file = Files.createFile(pmfs.scratch().root().resolve("file"));
    assertRefused(tryMount(file, pmfs.mountpoint()), 2, file);
  }

  @Test
  @OnRequest("cases")
  void mount_onMissingMountpoint_isRefused() {
    Path missing = pmfs.scratch().root().resolve("missing");
    assertRefused(tryMount(source, missing), 2, missing);
    assertThat(missing).doesNotExist();
  }

  @Test
  @OnRequest("cases")
  void mount_onFile_isRefused() throws IOException {
    Path file = Files.createFile(pmfs.scratch().root().resolve("file"));
    assertRefused(tryMount(source, file), 2, file);
  }

  @Test
  void mount_onNonEmptyDirectory_isRefusedAndLeavesIt() throws IOException {
    Path full = pmfs.directory("full");
    Path file = Files.createFile(full.resolve("file"));
    assertRefused(tryMount(source, full), 2, full);
    assertThat(file).exists();
  }

  @Test
  @OnRequest("cases")
  void mount_withTierBelowAFile_isRefused() throws IOException {
    Path tier = Files.createFile(pmfs.scratch().root().resolve("file")).resolve("tier");
    assertRefused(tryMount(source, pmfs.mountpoint(), "--tier", "ssd:" + tier), 2, tier);
  }

  @Test
  void mount_withReadOnlyTier_isRefused() {
    Machine.requireRoot();
    Path tier = pmfs.scratch().tmpfs("tmpfs", "size=1M");
    Command.run("mount", "-o", "remount,ro", tier.toString()).expect(0);
    Command refused = tryMount(source, pmfs.mountpoint(), "--tier", "ssd:" + tier);
    refused.expect(2);
    assertThat(refused.errorLines()).as("%s", refused).hasSize(1);
    assertThat(refused.err()).contains(tier.toString());
    assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
  }

  @Test
  @OnRequest("cases")
  void mount_withUnknownOptionOrBadSize_isRefused() {
    assertThat(tryMount(source, pmfs.mountpoint(), "--no-such-option").exit()).isEqualTo(2);
    String tier = "ssd:" + pmfs.tier() + ":7bananas";
    Command bad = tryMount(source, pmfs.mountpoint(), "--tier", tier);
    assertRefused(bad, 2, "7bananas");
    Command kind = tryMount(source, pmfs.mountpoint(), "--tier", "tape:" + pmfs.tier());
    assertRefused(kind, 2, "tape");
  }

  @Test
  void mount_ofTheSameAgain_isRefusedAndSaysWhoServes() {
    try (MountedPmfs mount = pmfs.mount(source)) {
      Command second = tryMount(source, pmfs.mountpoint()).expect(2);
      assertThat(second.errorLines()).as("%s", second).hasSize(1);
      assertThat(second.err()).contains("already mounted", Long.toString(mount.pid()));
      assertServesOn(mount);
    }
  }

  @Test
  @OnRequest("cases")
  void mount_ofAnotherSourceOnAMount_isRefused() {
    Path other = pmfs.directory("other");
    try (MountedPmfs mount = pmfs.mount(source)) {
      Command second = tryMount(other, pmfs.mountpoint()).expect(2);
      assertThat(second.errorLines()).as("%s", second).hasSize(1);
      assertThat(second.err()).contains(pmfs.mountpoint().toString());
      assertServesOn(mount);
    }
  }

  private void assertServesOn(MountedPmfs mount) {
    assertThat(Mounts.count(mount.mountpoint())).isEqualTo(1);
    assertThat(Posix.readByte(mount.path("part-000/file-00000"))).isEqualTo(1);
    assertThat(mount.status().number("pid")).isEqualTo(mount.pid());
  }

  @Test
  void mount_inBackground_printsOneLineAndClosesItsOutput() throws Exception {
    String[] arguments = pmfs.mountArguments(source, pmfs.mountpoint());
    Process process = pmfs.start(Redirect.PIPE, arguments);
    java.util.concurrent.Future<byte[]> output =
        java.util.concurrent.CompletableFuture.supplyAsync(
            () -> {
              try {
                return process.getInputStream().readAllBytes();
              } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
              }
            });
    try {
      assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
      // A daemon that kept the pipe open would hang every `$(pmfs mount ...)`.
      String text =
          new String(output.get(10, TimeUnit.SECONDS), java.nio.charset.StandardCharsets.UTF_8);
      assertThat(process.exitValue()).as(text).isEqualTo(0);
      assertThat(text.lines()).hasSize(1);
      assertThat(text).contains(pmfs.mountpoint().toString());
    } finally {
      pmfs.run("umount", pmfs.mountpoint().toString()).expect(0);
    }
  }

  @Test
  @OnRequest("cases")
  void mount_ofTwoSourcesWithOneTierAndState_servesBoth() {
    Path other = Dataset.create(pmfs.directory("other"), 2000).root();
    Path second = pmfs.directory("mnt2");
    try (MountedPmfs mount = pmfs.mount(source)) {
      tryMount(other, second).expect(0);
      try {
        assertThat(Dataset.read(mount.mountpoint().resolve("part-000/file-00000"))).hasSize(1000);
        assertThat(Dataset.read(second.resolve("part-000/file-00000"))).hasSize(2000);
      } finally {
        pmfs.run("umount", second.toString()).expect(0);
      }
      assertServesOn(mount);
    }
  }

  @Test
  @OnRequest("cases")
  void mount_ofOneSourceTwice_servesOrSaysWhyNot() {
    Path second = pmfs.directory("mnt2");
    try (MountedPmfs mount = pmfs.mount(source)) {
      Command again = tryMount(source, second);
      if (again.exit() == 0) {
        try {
          assertThat(Posix.readByte(second + "/part-000/file-00000")).isEqualTo(1);
        } finally {
          pmfs.run("umount", second.toString()).expect(0);
        }
      } else {
        assertThat(again.errorLines()).as("%s", again).hasSize(1);
        assertThat(again.err()).contains("already mounted on " + mount.mountpoint(), "pid ");
      }
      assertServesOn(mount);
    }
  }

  @Test
  void umountAndStatus_ofWhatIsNotMounted_exitWith3() {
    assertRefused(pmfs.run("umount", pmfs.mountpoint().toString()), 3, pmfs.mountpoint());
    assertRefused(pmfs.run("status", pmfs.mountpoint().toString()), 3, pmfs.mountpoint());
    Path missing = pmfs.scratch().root().resolve("missing");
    assertRefused(pmfs.run("umount", missing.toString()), 3, missing);
  }

  @Test
  void umount_ofBusyMount_namesTheHolderAndServesOn() throws Exception {
    try (MountedPmfs mount = pmfs.mount(source)) {
      Path file = mount.mountpoint().resolve("part-000/file-00000");
      Process holder =
          new ProcessBuilder("sleep", "60").redirectInput(Redirect.from(file.toFile())).start();
      try {
        Command umount = pmfs.run("umount", mount.mountpoint().toString());
        umount.expect(1);
        assertThat(umount.err()).contains(Long.toString(holder.pid())).contains("sleep");
        assertThat(Mounts.at(mount.mountpoint())).isTrue();
        assertThat(Posix.readByte(file.toString())).isEqualTo(1);
        assertThat(mount.status().number("pid")).isEqualTo(mount.pid());
      } finally {
        holder.destroyForcibly().waitFor();
      }
    }
  }

  @Test
  @OnRequest("cases")
  void umount_ofBusyWorkingDirectory_namesTheHolder() throws Exception {
    try (MountedPmfs mount = pmfs.mount(source)) {
      Path directory = mount.mountpoint().resolve("part-000");
      Process holder = new ProcessBuilder("sleep", "60").directory(directory.toFile()).start();
      try {
        Command umount = pmfs.run("umount", mount.mountpoint().toString());
        umount.expect(1);
        assertThat(umount.err()).contains(Long.toString(holder.pid()));
      } finally {
        holder.destroyForcibly().waitFor();
      }
    }
  }

  @Test
  void status_ofMount_saysWhatItIs() {
    try (MountedPmfs mount = pmfs.mount(source)) {
      String mountpoint = mount.mountpoint().toString();
      Status status = Status.parse(pmfs.run("status", mountpoint, "--json").expect(0).out());
      assertThat(status.text("mountpoint")).isEqualTo(mountpoint);
      assertThat(status.text("source")).isEqualTo(source.toString());
      assertThat(status.text("readMode")).isNotEmpty();
      assertThat(status.size("tiers")).isEqualTo(1);
      assertThat(status.text("tiers.0.kind")).isEqualTo("ssd");
      assertThat(MountedPmfs.runs(status.number("pid"))).isTrue();
      Command plain = pmfs.run("status", mountpoint).expect(0);
      assertThat(plain.out()).contains(source.toString());
    }
  }
}
