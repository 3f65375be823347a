package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.machine.NativeText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code scripts/mount.pmfs} as called by mount(8), with a fake pmfs. */
@Timeout(60)
final class MountHelperTest {
  @TempDir private Path temporary;
  private Path helper = Path.of("unset");

  /** The output and exit status of a run. */
  private record Result(int status, String out, String err) {}

  @BeforeEach
  void install() throws Exception {
    Path original = Path.of("").toAbsolutePath().resolve("../scripts/mount.pmfs");
    helper = Files.copy(original, Files.createDirectory(temporary.resolve("sbin")).resolve("it"));
    Files.createDirectory(temporary.resolve("bin"));
    fakePmfs("printf '%s\\n' \"$@\"");
  }

  @Test
  void options_ofPmfs_areTranslated() throws Exception {
    assertThat(
            run("/src", "/mnt", "-o", "tier=pm:/a:1G,tier=ssd:/b:80%,allow_other,fetch_threads=8")
                .out()
                .lines())
        .containsExactly(
            "mount",
            "--tier=pm:/a:1G",
            "--tier=ssd:/b:80%",
            "--allow-other",
            "--fetch-threads=8",
            "--",
            "/src",
            "/mnt");
  }

  @Test
  void options_inQuotes_keepTheirCommas() throws Exception {
    assertThat(run("/s", "/m", "-o", "nodes=\"a,b\",cluster=x y").out().lines())
        .containsExactly("mount", "--nodes=a,b", "--cluster=x y", "--", "/s", "/m");
  }

  @Test
  void options_ofMount_areNotPassedOn() throws Exception {
    String all =
        "rw,defaults,noauto,user,_netdev,nofail,x-systemd.automount,x-systemd.requires=a=b,nosuid,"
            + "nodev,relatime,user=ada,comment=x";

    assertThat(run("/s", "/m", "-o", all, "-n", "-rw", "-t", "pmfs").out().lines())
        .containsExactly("mount", "--", "/s", "/m");
  }

  /** Without a remount, for which root would follow the name of the mount point. */
  @Test
  void noexec_isAFlagOfTheMountItself() throws Exception {
    fakePmfs("echo \"${PMFS_MOUNT_FLAGS-none} $*\"");

    assertThat(run("/s", "/m", "-o", "noexec").out()).isEqualTo("noexec mount -- /s /m\n");
    assertThat(run("/s", "/m", "-o", "exec").out()).isEqualTo("none mount -- /s /m\n");
  }

  @Test
  void source_none_isLeftToTheConfiguration() throws Exception {
    assertThat(run("none", "/m").out().lines()).containsExactly("mount", "--", "/m");
  }

  @Test
  void runAs_isTheUser() throws Exception {
    assertThat(run("/s", "/m", "-o", "run_as=ada").out()).startsWith("mount\n--user=ada\n--\n");
  }

  @Test
  void paths_beginningWithADash_areNoOptions() throws Exception {
    assertThat(run("-o", "nested", "--", "-s", "-m").out().lines())
        .containsExactly("mount", "--nested", "--", "-s", "-m");
  }

  @Test
  void sloppy_leavesOutWhatPmfsDoesNotKnow() throws Exception {
    fakePmfs(
        "if [ \"$2\" = --help ]; then printf '      --tier=X   y\\n      --[no-]nested  z\\n      --cache, --node-cache=S w\\n';"
            + " else printf '%s\\n' \"$@\"; fi");

    assertThat(
            run("-s", "/s", "/m", "-o", "tie=1,tier=ssd:/a,nested,nest,cache=/c,node-cache=/n")
                .out()
                .lines())
        .containsExactly(
            "mount",
            "--tier=ssd:/a",
            "--nested",
            "--cache=/c",
            "--node-cache=/n",
            "--",
            "/s",
            "/m");
  }

  @Test
  void fake_doesNotMount() throws Exception {
    fakePmfs("echo mounted");

    assertThat(run("-f", "/s", "/m")).isEqualTo(new Result(0, "", ""));
    assertThat(run("-fv", "/s", "/m o").out())
        .contains("mount", "'/m o'")
        .doesNotContain("mounted");
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "1, 32", "2, 1", "3, 32", "4, 32", "5, 2", "130, 8", "143, 8"})
  void status_isThatOfMount(int ofPmfs, int ofMount) throws Exception {
    fakePmfs("exit " + ofPmfs);

    assertThat(run("/s", "/m").status()).isEqualTo(ofMount);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "/s                   | SOURCE and MOUNTPOINT",
        "/s /m /x             | SOURCE and MOUNTPOINT",
        "-o                   | -o: needs a value",
        "/s /m -o remount,ro  | remount: not supported",
        "/s /m -o a=\"b,c     | missing closing double quote",
        "-q /s /m             | -q: unknown option",
        "/s /m -o help        | help: not a mount option",
        "-N 1 /s /m           | -N: other namespaces",
      })
  void usage_wrong_isOneLine(String line, String message) throws Exception {
    Result result = run(line.split(" ", -1));

    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).startsWith("mount.pmfs: ").contains(message).hasLineCount(1);
  }

  @Test
  void pmfs_notThere_isSaid() throws Exception {
    Files.delete(temporary.resolve("bin/pmfs"));

    assertThat(run("/s", "/m").status()).isEqualTo(2);
  }

  private void fakePmfs(String script) throws IOException {
    Path pmfs = temporary.resolve("bin/pmfs");
    Files.writeString(pmfs, "#!/bin/bash\n" + script + "\n", UTF_8);
    Files.setPosixFilePermissions(pmfs, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  private Result run(String... arguments) throws Exception {
    List<String> line = new ArrayList<>(List.of("bash", helper.toString()));
    line.addAll(Arrays.asList(arguments));
    Path err = temporary.resolve("err");
    Process process = NativeText.process(line).redirectError(err.toFile()).start();
    String out = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();
    return new Result(process.exitValue(), out, Files.readString(err, UTF_8));
  }
}
