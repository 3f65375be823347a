package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The environment module of docs/modules, loaded and unloaded by Lmod. */
@OnRequest(value = "package", what = "the environment module, with Lmod")
final class ModuleFileIT {
  private static final Path LMOD = Path.of("/usr/share/lmod/lmod/libexec/lmod");
  private static final Path MODULE = Path.of("../docs/modules/pmfs.lua").toAbsolutePath();

  @TempDir private Path directory;

  @Test
  void module_loaded_findsTheCommandAndItsManualPages() throws IOException {
    assumeTrue(Files.exists(LMOD), "needs Lmod");
    Path copy = Files.createDirectory(directory.resolve("pmfs")).resolve("1.2.0.lua");
    Files.copy(MODULE, copy);

    String script =
        "module() { eval \"$(%s bash \"$@\")\"; }; module load pmfs; echo $PATH $MANPATH;"
                .formatted(LMOD)
            + " module unload pmfs; echo $PATH $MANPATH";
    Command loaded =
        Command.run(
            Map.of("MODULEPATH", directory.toString(), "PATH", "/usr/bin:/bin", "MANPATH", ""),
            Command.DEADLINE,
            List.of("bash", "-c", script));

    assertThat(loaded.expect(0).err()).isEmpty();
    assertThat(loaded.out().lines())
        .containsExactly(
            "/opt/pmfs/pmfs-1.2.0/bin:/usr/bin:/bin /opt/pmfs/pmfs-1.2.0/share/man::",
            "/usr/bin:/bin");
  }
}
