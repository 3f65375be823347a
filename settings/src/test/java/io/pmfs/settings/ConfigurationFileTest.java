package io.pmfs.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ConfigurationFileTest {
  private static final Path FILE = Path.of("/etc/pmfs/pmfs.toml");

  @Test
  void parse_commonKeysAndSection_keepsLineOfEach() throws Exception {
    ConfigurationFile file =
        parse(
            """
            keep-free = "20G"
            fetch-threads = 8
            allow-other = true

            [mount."/mnt/data.set"]
            source = "/lustre/imagenet"
            tier = ["pm:/p:1G", "ssd:/s"]
            """);

    assertThat(file.common())
        .containsEntry(MountOption.KEEP_FREE, Setting.of("20G", FILE + ":1"))
        .containsEntry(MountOption.FETCH_THREADS, Setting.of("8", FILE + ":2"))
        .containsEntry(MountOption.ALLOW_OTHER, Setting.of("true", FILE + ":3"))
        .hasSize(3);
    assertThat(file.mounts().get(Path.of("/mnt/data.set")))
        .containsEntry(
            MountOption.SOURCE,
            Setting.of("/lustre/imagenet", FILE + ":6 [mount.\"/mnt/data.set\"]"))
        .containsEntry(
            MountOption.TIER,
            new Setting(List.of("pm:/p:1G", "ssd:/s"), FILE + ":7 [mount.\"/mnt/data.set\"]"))
        .hasSize(2);
  }

  @Test
  void parse_emptyFile_isFine() throws Exception {
    assertThat(parse("").common()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "teir = \"ssd:/a\"               | :1: unknown key 'teir'; did you mean 'tier'?",
        "zzzzzzzzzzz = 1                 | :1: unknown key 'zzzzzzzzzzz'; the keys are ",
        "source = \"/a\"                 | :1: 'source' belongs to one mount",
        "user = \"ada\" | :1: 'user' cannot be set in a file; use --user or PMFS_USER",
        "mount = 3                       | :1: 'mount' is a section",
        "[mount.mnt]                     | :1: 'mnt' is not a mount point",
        "tier = 'ssd:relative'           | :1: 'ssd:relative': a path in this file must be"
            + " absolute",
        "state-dir = 'x'                 | :1: 'x': a path in this file must be absolute",
        "log-file = 'x'                  | :1: 'x': a path in this file must be absolute",
        "access-log = 'x'                | :1: 'x': a path in this file must be absolute",
        "nodes-file = 'x'                | :1: 'x': a path in this file must be absolute",
        "cluster-dir = './x'             | :1: './x': a path in this file must be absolute",
        "cluster-secret-file = 'x'       | :1: 'x': a path in this file must be absolute",
        "cluster-tls = '/a,b,/c'         | :1: '/a,b,/c': a path in this file must be absolute",
        "tier = [1, 2]                   | :1: 'tier' takes strings",
        "keep-free = ['1G', '2G']        | :1: 'keep-free' takes one value",
        "keep-free = 1.5                 | :1: 'keep-free' takes one value",
        "keep-free =                     | :1: Unexpected",
      })
  void parse_mistake_namesFileAndLine(String text, String expected) {
    assertThatThrownBy(() -> parse(text))
        .isInstanceOf(MountFailure.class)
        .hasMessageStartingWith(FILE + expected)
        .extracting(e -> ((MountFailure) e).exitStatus())
        .isEqualTo(ExitStatus.USAGE);
  }

  @Test
  void parse_mistakeInSection_namesItsLine() {
    assertThatThrownBy(() -> parse("\n[mount.'/m']\n\nsuorce = '/a'\n"))
        .hasMessage(FILE + ":4: unknown key 'suorce'; did you mean 'source'?");
  }

  @Test
  void load_missingFile_fails(@TempDir Path directory) {
    assertThatThrownBy(() -> ConfigurationFile.load(directory.resolve("none.toml")))
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("none.toml: configuration cannot be read: no such file");
  }

  @Test
  void load_hugeFile_isRefused(@TempDir Path directory) throws Exception {
    Path file = directory.resolve("huge.toml");
    Files.write(file, new byte[(1 << 20) + 1]);

    assertThatThrownBy(() -> ConfigurationFile.load(file))
        .hasMessageContaining("larger than 1 MiB");
  }

  private static ConfigurationFile parse(String text) throws MountFailure {
    return ConfigurationFile.parse(FILE, text);
  }
}
