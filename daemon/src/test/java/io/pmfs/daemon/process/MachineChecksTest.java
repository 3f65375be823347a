package io.pmfs.daemon.process;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.settings.TestMachine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class MachineChecksTest {
  @TempDir private Path directory;
  private TestMachine world;

  @BeforeEach
  void makeWorld() {
    world = new TestMachine(directory);
    world.uid = 4711;
  }

  private MachineChecks checks() {
    return new MachineChecks(world.surroundings());
  }

  @Test
  void privateMounts_withoutPrograms_namesTheFirst() {
    world.environment.put("PATH", directory.toString());

    assertThat(checks().privateMounts()).startsWith("unshare: not found");
  }

  @ParameterizedTest
  @CsvSource({
    "user/max_user_namespaces, 0, sysctl -w user.max_user_namespaces=15000",
    "user/max_mnt_namespaces, 0, sysctl -w user.max_mnt_namespaces=15000",
    "kernel/unprivileged_userns_clone, 0, sysctl -w kernel.unprivileged_userns_clone=1",
    "kernel/apparmor_restrict_unprivileged_userns, 1,"
        + " sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
  })
  void privateMounts_forbiddenByASetting_saysWhichToChange(String file, String value, String remedy)
      throws IOException {
    world.environment.put("PATH", "/usr/bin:/bin");
    Path setting = world.root.resolve("proc/sys").resolve(file);
    Files.createDirectories(setting.getParent());
    Files.writeString(setting, value + "\n");

    assertThat(checks().privateMounts()).endsWith(remedy);
  }
}
