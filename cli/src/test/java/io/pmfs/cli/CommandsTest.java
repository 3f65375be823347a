package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.pmfs.daemon.process.Version;
import io.pmfs.machine.ExitStatus;
import io.pmfs.settings.MountOption;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class CommandsTest {
  @TempDir private Path temporary;
  private TestWorld world;

  @BeforeEach
  void makeWorld() {
    world = new TestWorld(temporary);
    world.makeDirectory("src");
    world.makeDirectory("mnt");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "mount", "umount", "drain", "run", "upgrade", "stage", "status", "evict", "verify",
        "config", "doctor"
      })
  void help_ofEachCommand_hasExamples(String command) {
    assertThat(world.execute(command, "--help")).isZero();
    assertThat(world.output()).contains("Examples:", "pmfs " + command);

    String byFlag = world.output();
    assertThat(world.execute("help", command)).isZero();
    assertThat(world.output()).isEqualTo(byFlag);
  }

  @Test
  void help_ofProgram_listsCommandsAndStatuses() {
    assertThat(world.execute("--help")).isZero();
    assertThat(world.output())
        .contains(
            "mount", "umount", "stage", "status", "evict", "verify", "config", "doctor", "help");
    assertThat(world.output()).contains("Examples:");
    for (ExitStatus.Meaning meaning : ExitStatus.MEANINGS) {
      assertThat(world.output())
          .containsPattern("\n +" + meaning.status() + " +" + meaning.summary() + "\n");
    }
  }

  @Test
  void help_ofProgram_hasEachCommandOnALineBelowItsPurpose() throws Exception {
    assertThat(world.execute("--help")).isZero();

    List<String> lines = world.output().lines().toList();
    for (String command : Documentation.commands().getSubcommands().keySet()) {
      assertThat(lines)
          .filteredOn(line -> line.matches(" {2}" + command + " +[A-Z].*"))
          .as(command)
          .hasSize(1)
          .allMatch(line -> line.length() <= 100);
    }
    assertThat(world.output())
        .containsPattern(
            "\n\nMounting:\n {2}mount .*\n {2}umount .*\n {2}run .*\n {2}upgrade .*\n\n");
  }

  @ParameterizedTest
  @ValueSource(strings = {"mount", "run", "config"})
  void help_ofMounts_hasTheOptionsInSections(String command) {
    assertThat(world.execute(command, "--help")).isZero();

    int end = 0;
    for (MountOption<?> option : MountOption.options()) {
      int heading = world.output().indexOf("\n" + option.group().heading() + "\n");
      Matcher line =
          Pattern.compile("\n +(--[a-z]+, )?--(\\[no-\\])?" + option.key() + "\\b")
              .matcher(world.output());
      assertThat(line.find(end)).as(option.key()).isTrue();
      assertThat(line.start()).as(option.key()).isGreaterThan(heading);
      assertThat(heading).as(option.key()).isPositive();
      end = line.start();
    }
  }

  @Test
  void version_anywhere_isPrinted() {
    assertThat(world.execute("--version")).isZero();
    assertThat(world.output()).isEqualTo("pmfs " + Version.withCommit() + "\n");
    assertThat(world.execute("mount", "--version")).isZero();
    assertThat(world.output()).matches("pmfs \\d+\\..*\n");
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void verbose_failure_addsTheStackTrace(boolean before) {
    int status =
        before
            ? world.execute("--verbose", "umount", "mnt")
            : world.execute("umount", "--verbose", "mnt");

    assertThat(status).isEqualTo(ExitStatus.NOT_MOUNTED);
    assertThat(world.errors()).contains("MountFailure", "\tat ");
  }

  @Test
  void bug_inACommand_isOneLineAndFails() {
    world.opener =
        (settings, session) -> {
          throw new IllegalStateException("boom");
        };

    assertThat(world.execute("mount", "src", "mnt")).isEqualTo(ExitStatus.FAILED);
    assertThat(world.errors()).contains("internal error: ", "boom", "--verbose");
    assertThat(world.errors().lines()).hasSize(1);
  }

  @Test
  void config_noMountpoint_showsEachOptionAndItsOrigin() throws Exception {
    world.write("etc/pmfs/pmfs.toml", "keep-free = \"20G\"\n");
    world.environment.put("PMFS_LOG_LEVEL", "debug");

    assertThat(world.execute("config", "--eviction", "lru")).isZero();

    assertThat(world.output().lines().map(l -> l.replaceAll(" +", " ")))
        .contains(
            "keep-free = 20G (from " + world.root.resolve("etc/pmfs/pmfs.toml") + ":1)",
            "log-level = debug (from environment PMFS_LOG_LEVEL)",
            "eviction = lru (from command line)",
            "fetch-threads = 4 (from default)",
            "tier = ssd:%s (from default: $PMFS_CACHE_DIR is local)"
                .formatted(world.directory.resolve("cache")));
  }

  @Test
  void config_json_isOneObject() {
    assertThat(world.execute("config", "--json", "--allow-other", "/mnt/x")).isZero();

    JsonObject config = JsonParser.parseString(world.output()).getAsJsonObject();
    assertThat(config.get("mountpoint").getAsString()).isEqualTo("/mnt/x");
    JsonObject allow = config.getAsJsonObject("options").getAsJsonObject("allow-other");
    assertThat(allow.get("value").getAsString()).isEqualTo("true");
    assertThat(allow.get("from").getAsString()).isEqualTo("command line");
  }

  @Test
  void config_negatedFlag_overridesTheFile() {
    world.write("etc/pmfs/pmfs.toml", "allow-other = true\n");

    assertThat(world.execute("config", "--no-allow-other")).isZero();
    assertThat(world.output()).containsPattern("allow-other +=  *false +\\(from command line\\)");
  }

  @Test
  void config_olderNamesOfAnOption_areUnderstood() throws Exception {
    assertThat(world.execute("config", "--cache", "/run/a")).isZero();
    assertThat(world.output()).containsPattern("node-cache += /run/a +\\(from command line\\)");

    Path file = Files.writeString(temporary.resolve("older.toml"), "cache = \"/run/b\"\n");
    assertThat(world.execute("config", "--config", file.toString())).isZero();
    assertThat(world.output()).containsPattern("node-cache += /run/b +\\(from .*/older.toml:1\\)");

    world.environment.put("PMFS_CACHE", "/run/c");
    assertThat(world.execute("config")).isZero();
    assertThat(world.output())
        .containsPattern("node-cache += /run/c +\\(from environment PMFS_CACHE\\)");
    assertThat(world.errors()).isEmpty();
  }

  @Test
  void config_shownByConfig_isReadBackTheSame() throws Exception {
    assertThat(world.execute("config", "--tier", "pm:/p:1536K", "--tier", "ssd:/s:80%")).isZero();

    assertThat(world.output()).contains("pm:/p:1536K ssd:/s:80%");
  }

  @Test
  void status_nothingRuns_isDone() {
    assertThat(world.execute("status")).isZero();
    assertThat(world.output()).isEqualTo("No mounts.\n");
    assertThat(world.execute("status", "--json")).isZero();
    assertThat(world.output()).isEqualTo("[]\n");
  }

  @Test
  void mount_mistypedVariable_warnsAndGoesOn() {
    world.environment.put("PMFS_TEIR", "x");

    world.execute("mount", "src", "mnt");

    assertThat(world.errors())
        .startsWith("pmfs: PMFS_TEIR: unknown variable, ignored; did you mean");
  }

  @Test
  void doctor_goodMachine_isDone() {
    assertThat(world.execute("doctor")).isZero();
    assertThat(world.output())
        .containsPattern("ok +/dev/fuse +can be opened")
        .containsPattern("ok +libfuse +libfuse.so.2 in ld.so.cache")
        .containsPattern("ok +open files +524288")
        .containsPattern("ok +kernel +6.12.0-1-amd64")
        .containsPattern("\npmfs can mount here(, with \\d+ warnings?)?\\.\n$")
        .doesNotContain("fail");
  }

  @Test
  void doctor_noFuse_failsWithRemedy() throws Exception {
    world.uid = 1000;
    Files.delete(world.root.resolve("dev/fuse"));
    world.write("etc/ld.so.cache", "nothing");

    assertThat(world.execute("doctor")).isEqualTo(ExitStatus.CANNOT);
    assertThat(world.output())
        .containsPattern("fail +/dev/fuse .*modprobe fuse")
        .containsPattern("fail +libfuse .*apt-get install libfuse2")
        .containsPattern(
            "\npmfs cannot mount here: \\d+ problems; first fix /dev/fuse: .*modprobe fuse.*\n$");
  }

  @Test
  void doctor_withoutUtilLinux_failsWithRemedy() {
    world.environment.put("PATH", "/nonexistent");

    assertThat(world.execute("doctor")).isEqualTo(ExitStatus.CANNOT);
    assertThat(world.output())
        .containsPattern("fail +setsid +not found; .*dnf install util-linux")
        .containsPattern("fail +flock +not found; .*dnf install util-linux");
  }

  @Test
  void doctor_byUserWithFusermount_saysWhichBridgeAndNeedsNoLibrary() throws Exception {
    world.uid = 4711;
    world.fusermount("fusermount3");
    world.write("etc/ld.so.cache", "nothing");

    world.execute("doctor");

    assertThat(world.output())
        .containsPattern("ok +bridge +kernel \\(the default; users mount with .*/fusermount3\\)")
        .containsPattern("ok +libfuse +no libfuse.so.2; only --bridge jnr needs it");
  }

  @Test
  void doctor_oldKernelAndDaxMount_saySo() {
    world.write("proc/sys/kernel/osrelease", "4.18.0-553.el8\n");
    world.mountinfo("9 1 259:0 / /mnt/pmem0 rw - ext4 /dev/pmem0 rw,dax=always");

    assertThat(world.execute("doctor")).isZero();
    assertThat(world.output())
        .containsPattern("warn +passthrough +unlikely")
        .containsPattern("ok +DAX +/mnt/pmem0 \\(ext4\\)");
  }

  /** A disk in sysfs. */
  private void device(String name, String offersDax) throws IOException {
    world.write("sys/block/" + name + "/queue/dax", offersDax + "\n");
    Path links = Files.createDirectories(world.root.resolve("sys/class/block"));
    Files.createSymbolicLink(links.resolve(name), world.root.resolve("sys/block/" + name));
  }

  @Test
  void doctor_pmemMountedWithoutDax_saysTheOption() throws Exception {
    device("pmem0", "1");
    world.mountinfo("9 1 259:0 / /mnt/pmem0 rw - xfs /dev/pmem0 rw");

    assertThat(world.execute("doctor")).isZero();
    assertThat(world.output())
        .containsPattern("warn +DAX +/mnt/pmem0 \\(xfs\\) .* mount it with -o dax=always")
        .doesNotContain("no persistent memory", "is not mounted:");
  }

  @Test
  void doctor_pmemThatIsNotMounted_saysWhatToDo() throws Exception {
    device("pmem0", "1");
    device("pmem1s", "0");
    device("pmem2", "1");
    world.write("sys/block/pmem2/holders/dm-0/dev", "");
    world.mountinfo("9 1 259:0 / /mnt/d rw - ext4 /dev/pmem0p1 rw,dax=always");
    device("pmem0p1", "1");

    assertThat(world.execute("doctor")).isZero();
    assertThat(world.output())
        .containsPattern("ok +DAX +/mnt/d \\(ext4\\): a place")
        .containsPattern("warn +DAX +/dev/pmem1s is not in mode fsdax: ndctl")
        .doesNotContain("/dev/pmem0 is", "/dev/pmem2 is");
  }

  @Test
  void doctor_withoutPersistentMemory_saysSo() {
    assertThat(world.execute("doctor")).isZero();
    assertThat(world.output()).containsPattern("ok +DAX +no persistent memory");
  }

  @Test
  void doctor_json_hasVerdictAndFindings() {
    assertThat(world.execute("doctor", "--json")).isZero();

    JsonObject report = JsonParser.parseString(world.output()).getAsJsonObject();
    assertThat(report.get("verdict").getAsString()).startsWith("pmfs can mount here");
    assertThat(report.getAsJsonArray("findings")).isNotEmpty();
  }

  @Test
  void config_ofACluster_neverPrintsTheSecret() throws Exception {
    String secret = "correct horse battery staple";
    world.environment.put("PMFS_CLUSTER_SECRET", secret);
    Path file = Files.writeString(temporary.resolve("secret"), secret);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));

    for (String json : List.of("--json", "--no-nested")) {
      int status =
          world.execute(
              "config",
              "--cluster",
              "train",
              "--nodes",
              "n1",
              "--cluster-secret-file",
              file.toString(),
              json);

      assertThat(status).isZero();
      assertThat(world.output()).contains("train", "cluster-secret-file", file.toString());
      assertThat(world.output() + world.errors()).doesNotContain(secret);
    }
  }
}
