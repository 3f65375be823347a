package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/**
 * A mount that automount(8) makes when somebody looks at a directory, and takes away when nobody
 * has for a while.
 */
final class AutofsIT {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  @Installed(byRoot = true)
  private Installation pmfs;

  @Test
  void dataset_isMountedWhenItIsUsed_andUnmountedWhenItIsNot() throws Exception {
    for (String command : List.of("automount", "mount.fuse", "setsid", "timeout")) {
      Machine.requireCommand(command);
    }
    Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(20, 10_000));
    Path top = pmfs.directory("auto");
    Path shown = top.resolve("data");
    Process automount = automount(top, dataset.root());
    try {
      Await.until("automount watches", PATIENCE, () -> Mounts.at(top));
      for (int i = 0; i < 2; i++) {
        diff(dataset.root(), shown);
        assertThat(Mounts.at(shown)).isTrue();
        Await.until("it is not used any more", PATIENCE, () -> !Mounts.at(shown));
        Await.until(
            "its daemon ended", PATIENCE, () -> pmfs.run("status").out().contains("No mounts."));
      }
    } finally {
      automount.destroy();
      if (!automount.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
        automount.destroyForcibly();
      }
    }
  }

  /** In a session of its own, as a service: autofs knows automount by its process group. */
  private Process automount(Path top, Path source) throws IOException {
    Path map = Files.writeString(pmfs.scratch().root().resolve("map"), entry(source));
    Path master =
        Files.writeString(
            pmfs.scratch().root().resolve("master"), top + " file:" + map + " --timeout=4\n");
    return Command.builder(
            pmfs.environment(),
            List.of("setsid", "automount", "--foreground", "--timeout", "4", master.toString()))
        .redirectErrorStream(true)
        .redirectOutput(pmfs.scratch().root().resolve("automount.log").toFile())
        .start();
  }

  /** A line of autofs(5), by mount.fuse(8), which runs the program before the number sign. */
  private String entry(Path source) {
    Path program = Installation.launcherOfCheckout().resolveSibling("mount.pmfs").normalize();
    return "data -fstype=fuse,tier=ssd:%s,keep-free=0,allow-other :%s\\#%s\n"
        .formatted(pmfs.tier(), program, source);
  }

  private static void diff(Path source, Path shown) {
    Command.run(
            "timeout", "60", "setsid", "--wait", "diff", "-r", source.toString(), shown.toString())
        .expect(0);
  }
}
