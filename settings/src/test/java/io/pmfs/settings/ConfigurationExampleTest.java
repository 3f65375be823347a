package io.pmfs.settings;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;

final class ConfigurationExampleTest {
  private static final Path FILE = Path.of("/etc/pmfs/pmfs.toml");

  @Test
  void text_asItIs_saysNothing() throws Exception {
    ConfigurationFile file = ConfigurationFile.parse(FILE, ConfigurationExample.text());

    assertThat(file.common()).isEmpty();
    assertThat(file.mounts()).isEmpty();
  }

  @Test
  void text_withoutItsSigns_hasEveryKey() throws Exception {
    String all = ConfigurationExample.text().replaceAll("(?m)^#(?! )", "");

    ConfigurationFile file = ConfigurationFile.parse(FILE, all);

    assertThat(file.common().keySet())
        .containsExactlyInAnyOrderElementsOf(
            MountOption.options().stream().filter(MountOption::isForFiles).toList());
    assertThat(file.mounts()).containsOnlyKeys(Path.of("/mnt/dataset"));
  }

  @Test
  void text_withoutItsSigns_hasTheDefaults() throws Exception {
    String all = ConfigurationExample.text().replaceAll("(?m)^#(?! )", "");
    ConfigurationFile file = ConfigurationFile.parse(FILE, all);

    file.common()
        .forEach(
            (option, setting) -> {
              if (option.defaultText() != null) {
                assertThat(setting.values()).as(option.key()).containsExactly(option.defaultText());
              }
            });
  }

  @Test
  void options_forFiles_haveADefaultOrAnExample() {
    assertThat(MountOption.values())
        .filteredOn(MountOption::isForFiles)
        .allMatch(option -> !option.example().isEmpty());
  }

  @Test
  void lines_fitAScreen() {
    assertThat(ConfigurationExample.text().lines()).allMatch(line -> line.length() <= 100);
  }
}
