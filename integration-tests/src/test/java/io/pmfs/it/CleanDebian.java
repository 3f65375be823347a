package io.pmfs.it;

import com.github.dockerjava.api.command.CreateContainerCmd;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
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

  private static final Set<String> MADE = new HashSet<>();

  private final GenericContainer<?> container;

  CleanDebian() {
    this("");
  }

  private CleanDebian(String packages) {
    Containers.require();
    container =
        new GenericContainer<>(DockerImageName.parse(makeImage(packages)))
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

  /** With more packages of Debian, separated by commas. */
  static CleanDebian with(String packages) {
    return new CleanDebian(packages);
  }

  /** The image without more packages. */
  static void makeImage() {
    makeImage("");
  }

  private static synchronized String makeImage(String packages) {
    String tag = packages.isEmpty() ? IMAGE : IMAGE + "-" + packages.replace(',', '-');
    if (MADE.add(tag)) {
      Path script = Installation.launcherOfCheckout().resolveSibling("container-image");
      List<String> line = new ArrayList<>(List.of(script.toString(), "--debian"));
      if (!packages.isEmpty()) {
        line.addAll(List.of("--with", packages));
      }
      line.add(tag);
      Command.run(Map.of(), IMAGE_DEADLINE, line).expect(0);
    }
    return tag;
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
