package io.pmfs.it;

import static org.assertj.core.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.github.dockerjava.api.DockerClient;
import com.github.dockerjava.api.command.CreateContainerCmd;
import com.github.dockerjava.api.command.CreateNetworkCmd;
import com.github.dockerjava.api.exception.DockerException;
import com.github.dockerjava.api.model.Capability;
import com.github.dockerjava.api.model.Device;
import com.github.dockerjava.api.model.HostConfig;
import com.github.dockerjava.api.model.Network.Ipam;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.ToLongFunction;
import java.util.stream.Stream;
import org.testcontainers.DockerClientFactory;
import org.testcontainers.containers.Container;
import org.testcontainers.containers.Network;
import org.testcontainers.utility.MountableFile;

/**
 * Computers that are containers in one network, with FUSE inside and pmfs installed; {@link Nodes}
 * start faster and are easier to look into, these have files and processes of their own. All see
 * one source, a volume, so its inode numbers are the same for all. Close removes all of it.
 *
 * <p>They run only where somebody asked for it: {@code scripts/container-engine} finds or starts an
 * engine and sees what it can do, and {@code scripts/test} uses that.
 */
final class Containers implements AutoCloseable {
  static final String IMAGE = "pmfs-test:local";

  /** Where the source is in each. */
  static final String SOURCE = "/source";

  /** Of the range for tests of networks, RFC 2544; an engine of our own has it for itself. */
  private static final String NETWORKS = "198.19.";

  private static boolean imageIsMade;

  private final String name = TestRun.newName();
  private final DockerClient engine;
  private final Network network;
  private final List<ContainerNode> nodes = new ArrayList<>();

  /**
   * Starts containers.
   *
   * @param source the directory whose content is copied to the volume that all of them see
   */
  Containers(int count, Path source) {
    require();
    makeImage();
    engine = DockerClientFactory.instance().client();
    removeNamed(TestRun::isStale);
    network = makeNetwork(name);
    try {
      engine.createVolumeCmd().withName(name).exec();
      for (int index = 1; index <= count; index++) {
        ContainerNode node = new ContainerNode(name, "node" + index, network, addressOf(index));
        nodes.add(node);
        node.start();
      }
      nodes.get(0).copyIn(MountableFile.forHostPath(source), SOURCE);
    } catch (RuntimeException | AssertionError e) {
      close();
      throw e;
    }
  }

  /** What is missing is named as the reason why the test is skipped; or fails, if it must not. */
  static void require() {
    String reason = System.getenv().getOrDefault("PMFS_NO_CONTAINERS", "");
    boolean required = "1".equals(System.getenv("PMFS_REQUIRE_DOCKER"));
    if (reason.isEmpty() && required && !DockerClientFactory.instance().isDockerAvailable()) {
      reason = "no container engine answers to Testcontainers";
    }
    if (!reason.isEmpty() && required) {
      fail("PMFS_REQUIRE_DOCKER=1, but " + reason);
    }
    assumeTrue(reason.isEmpty(), reason);
    assumeTrue(required, "needs containers: run by scripts/test or scripts/container-engine run");
  }

  /** Once for all tests: what is built does not change meanwhile. */
  private static synchronized void makeImage() {
    if (!imageIsMade) {
      Path script = Installation.launcherOfCheckout().resolveSibling("container-image");
      Command.run(script.toString(), IMAGE).expect(0);
      imageIsMade = true;
    }
  }

  /** A network that no other of this engine overlaps; addresses can be chosen in it. */
  private static Network makeNetwork(String name) {
    DockerException refused = null;
    for (int third = 0; third < 256; third++) {
      Ipam.Config range = new Ipam.Config().withSubnet(NETWORKS + third + ".0/24");
      Network network =
          Network.builder()
              .createNetworkCmdModifier(
                  (CreateNetworkCmd command) ->
                      command.withName(name).withIpam(new Ipam().withConfig(range)))
              .build();
      try {
        network.getId();
        return network;
      } catch (DockerException e) {
        refused = e;
      }
    }
    throw new AssertionError("no free network below " + NETWORKS, refused);
  }

  private String addressOf(int index) {
    var ranges =
        engine.inspectNetworkCmd().withNetworkId(network.getId()).exec().getIpam().getConfig();
    // The first is the engine's own.
    return ranges.get(0).getSubnet().replace(".0/24", "." + (index + 1));
  }

  /** From 0 up. */
  ContainerNode get(int index) {
    return nodes.get(index);
  }

  List<ContainerNode> all() {
    return List.copyOf(nodes);
  }

  /** As {@link Nodes#sum} does, over those that are mounted. */
  long sum(String path) {
    return sum(status -> status.number(path));
  }

  /** The same of what is derived from the status. */
  long sum(ToLongFunction<Status> value) {
    return nodes.stream()
        .filter(ContainerNode::isMounted)
        .mapToLong(node -> value.applyAsLong(node.status()))
        .sum();
  }

  /** Runs a command as root in a container, which is killed if it takes too long. */
  static Command run(Container<?> container, int seconds, String... line) {
    List<String> all = new ArrayList<>(List.of("timeout", "-k", "5", Integer.toString(seconds)));
    all.addAll(Arrays.asList(line));
    try {
      Container.ExecResult result = container.execInContainer(all.toArray(String[]::new));
      return new Command(all, result.getExitCode(), result.getStdout(), result.getStderr());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("interrupted: " + String.join(" ", line), e);
    }
  }

  /** Gives a container what FUSE needs. */
  static HostConfig permitFuse(CreateContainerCmd command) {
    return hostOf(command)
        .withCapAdd(Capability.SYS_ADMIN)
        .withDevices(new Device("rwm", "/dev/fuse", "/dev/fuse"));
  }

  static HostConfig hostOf(CreateContainerCmd command) {
    HostConfig host = command.getHostConfig();
    if (host == null) {
      throw new AssertionError("no host configuration");
    }
    return host;
  }

  @Override
  public void close() {
    removeNamed(made -> made.equals(name) || made.startsWith(name + "."));
  }

  private void removeNamed(Predicate<String> which) {
    for (var container : engine.listContainersCmd().withShowAll(true).exec()) {
      if (Stream.of(container.getNames()).map(n -> n.substring(1)).anyMatch(which)) {
        // Also one that is paused or ends by itself.
        engine.removeContainerCmd(container.getId()).withForce(true).withRemoveVolumes(true).exec();
      }
    }
    for (var made : engine.listNetworksCmd().exec()) {
      if (which.test(made.getName())) {
        engine.removeNetworkCmd(made.getId()).exec();
      }
    }
    for (var volume : engine.listVolumesCmd().exec().getVolumes()) {
      if (which.test(volume.getName())) {
        engine.removeVolumeCmd(volume.getName()).exec();
      }
    }
  }
}
