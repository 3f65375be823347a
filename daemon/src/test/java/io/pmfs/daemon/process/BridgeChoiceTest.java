package io.pmfs.daemon.process;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.settings.TestMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class BridgeChoiceTest {
  @TempDir private Path directory;
  private TestMachine world;

  @BeforeEach
  void makeWorld() {
    world = new TestMachine(directory);
    world.uid = 4711;
  }

  private BridgeChoice choice(String option) {
    return BridgeChoice.of(option, world.surroundings());
  }

  @Test
  void of_autoForRoot_isKernelByMount() throws Exception {
    world.uid = 0;
    world.fusermount(null);

    assertThat(choice("auto"))
        .isEqualTo(new BridgeChoice("kernel", "the default; root mounts with mount(2)"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"fusermount3", "fusermount"})
  void of_autoForUserWithEither_isKernelAndNamesIt(String program) throws Exception {
    world.fusermount(program);

    BridgeChoice choice = choice("auto");

    assertThat(choice.isKernel()).isTrue();
    assertThat(choice.reason()).endsWith("/bin/" + program);
  }

  @Test
  void of_autoForUserWithoutFusermount_isJnrAndSaysWhy() throws Exception {
    world.fusermount(null);

    assertThat(choice("auto").name()).isEqualTo("jnr");
    assertThat(choice("auto").reason()).startsWith("not kernel: fusermount: not found");
  }

  @Test
  void of_autoForUserWithoutDevice_isJnrAndSaysWhy() throws Exception {
    world.fusermount("fusermount3");
    Files.delete(world.root.resolve("dev/fuse"));

    assertThat(choice("auto").name()).isEqualTo("jnr");
    assertThat(choice("auto").reason()).contains("dev/fuse: missing");
  }

  @ParameterizedTest
  @ValueSource(strings = {"kernel", "jnr"})
  void of_oneAskedFor_isThat(String name) {
    assertThat(choice(name)).isEqualTo(new BridgeChoice(name, "as requested"));
  }
}
