package io.pmfs.it;

import com.github.dockerjava.api.command.CreateContainerCmd;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.utility.DockerImageName;
import org.testcontainers.utility.MountableFile;

/**
 * A container of a Debian on which nothing but what the Debian package of pmfs depends on was
 * installed, with FUSE. Close removes it.
 */
final class CleanDebian implements AutoCloseable {
  static final String IMAGE = "pmfs-test:debian";
  private static final Duration IMAGE_DEADLINE = Duration.ofMinutes(10);
  private static final int DEADLINE_SECONDS = 200;

  /** The first process takes over those that lose their parent, and ends when it is told to. */
  private static final String FIRST_PROCESS =
      "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done";

  private static boolean imageIsMade;

  private final GenericContainer<?> container;

  CleanDebian() {
    Containers.require();
    makeImage();
    container =
        new GenericContainer<>(DockerImageName.parse(IMAGE))
            .withImagePullPolicy(image -> false)
            .withNetworkMode("none")
            .withCreateContainerCmdModifier(
                (CreateContainerCmd command) -> {
                  Containers.permitFuse(command);
                  command.withName(TestRun.newName()).withHostName("clean");
                })
            .withCommand("bash", "-c", FIRST_PROCESS);
    container.start();
  }

  static synchronized void makeImage() {
    if (!imageIsMade) {
      Path script = Installation.launcherOfCheckout().resolveSibling("container-image");
      Command.run(Map.of(), IMAGE_DEADLINE, List.of(script.toString(), "--debian", IMAGE))
          .expect(0);
      imageIsMade = true;
    }
  }

  void copyIn(Path file, String to) {
    container.copyFileToContainer(MountableFile.forHostPath(file), to);
  }

  /** Runs a line of shell as root, which is killed if it takes too long. */
  Command run(String line) {
    return Containers.run(container, DEADLINE_SECONDS, "bash", "-c", line);
  }

  /** Runs it and answers what it printed; fails if it does. */
  String expect(String line) {
    return run(line).expect(0).out();
  }

  @Override
  public void close() {
    container.stop();
  }
}
