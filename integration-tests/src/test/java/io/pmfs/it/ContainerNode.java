package io.pmfs.it;

import com.github.dockerjava.api.DockerClient;
import com.github.dockerjava.api.command.CreateContainerCmd;
import com.github.dockerjava.api.model.Bind;
import com.github.dockerjava.api.model.ContainerNetwork;
import com.github.dockerjava.api.model.Volume;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.testcontainers.DockerClientFactory;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.Network;
import org.testcontainers.utility.DockerImageName;
import org.testcontainers.utility.MountableFile;

/**
 * A computer that is a container, with an address and a name in the network of {@link Containers}.
 */
final class ContainerNode {
  static final String MOUNTPOINT = "/mnt";

  /** Outlives a restart of the container. */
  static final String TIER = "/var/pmfs/tier";

  private static final int DEADLINE_SECONDS = 100;

  /** The first process takes over those that lose their parent, and ends when it is told to. */
  private static final String FIRST_PROCESS =
      "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done";

  /**
   * By the daemon's socket, since starting Java for each answer would keep a small machine busy.
   */
  private static final String ASK_STATUS =
      "curl -sf -m 60 --unix-socket /run/pmfs/*.sock http://pmfs/status"
          + " || pmfs status "
          + MOUNTPOINT
          + " --json";

  private static final String CLASSES = "/opt/test";

  /** The number of the process is beside its output. */
  private static final String BACKGROUND =
      "out=$1; shift; setsid \"$@\" >\"$out\" 2>&1 </dev/null & echo $! >\"$out.pid\"";

  private final DockerClient engine = DockerClientFactory.instance().client();
  private final String alias;
  private final Network network;
  private final String address;
  private final GenericContainer<?> container;

  /**
   * Describes a container.
   *
   * @param name of all containers together, and of the volume with the source
   * @param alias its name in the network
   */
  ContainerNode(String name, String alias, Network network, String address) {
    this.alias = alias;
    this.network = network;
    this.address = address;
    Bind source = new Bind(name, new Volume(Containers.SOURCE));
    this.container =
        new GenericContainer<>(DockerImageName.parse(Containers.IMAGE))
            .withImagePullPolicy(image -> false)
            .withNetwork(network)
            .withNetworkAliases(alias)
            .withCreateContainerCmdModifier(
                (CreateContainerCmd command) -> {
                  Containers.permitFuse(command).withBinds(source);
                  command.withName(name + "." + alias).withHostName(alias).withIpv4Address(address);
                })
            .withCommand("bash", "-c", FIRST_PROCESS);
  }

  void start() {
    container.start();
  }

  /** Its name for the other containers. */
  String alias() {
    return alias;
  }

  String address() {
    return address;
  }

  String id() {
    return container.getContainerId();
  }

  /** Copies a file or a directory's content; a bind would need the engine to be on this machine. */
  void copyIn(MountableFile what, String to) {
    container.copyFileToContainer(what, to);
  }

  /** Runs a command as root, which is killed if it takes too long. */
  Command run(String... line) {
    return Containers.run(container, DEADLINE_SECONDS, line);
  }

  /** Mounts the source in the background, with the same tier and state each time. */
  Command mount(String... options) {
    List<String> line = new ArrayList<>(List.of("pmfs", "mount", Containers.SOURCE, MOUNTPOINT));
    line.addAll(List.of("--tier", "ssd:" + TIER, "--keep-free", "0"));
    line.addAll(Arrays.asList(options));
    return run(line.toArray(String[]::new)).expect(0);
  }

  /**
   * Starts a class of these tests in the background.
   *
   * @param output a file for what it prints
   * @param classes the one with the main method, and others that it needs
   */
  void startProgram(String output, List<Class<?>> classes, String... arguments) {
    for (Class<?> needed : classes) {
      String file = needed.getName().replace('.', '/') + ".class";
      copyIn(MountableFile.forClasspathResource(file), CLASSES + "/" + file);
    }
    List<String> line = new ArrayList<>(List.of("sh", "-c", BACKGROUND, "sh", output));
    line.addAll(List.of("java", "-cp", CLASSES, classes.get(0).getName()));
    line.addAll(Arrays.asList(arguments));
    run(line.toArray(String[]::new)).expect(0);
  }

  /** Ends what was started with that output; nothing to do if it has ended. */
  void endProgram(String output) {
    run("sh", "-c", "kill $(cat \"$1.pid\") || true", "sh", output).expect(0);
  }

  boolean isMounted() {
    return isRunning() && run("mountpoint", "-q", MOUNTPOINT).exit() == 0;
  }

  Status status() {
    return Status.parse(run("sh", "-c", ASK_STATUS).expect(0).out());
  }

  boolean isRunning() {
    return Boolean.TRUE.equals(engine.inspectContainerCmd(id()).exec().getState().getRunning());
  }

  /** Stops all of its processes where they are; the kernel goes on to answer for them. */
  void pause() {
    engine.pauseContainerCmd(id()).exec();
  }

  void unpause() {
    engine.unpauseContainerCmd(id()).exec();
  }

  /** Ends it as a loss of power does; its files stay. */
  void kill() {
    engine.killContainerCmd(id()).exec();
  }

  /** Starts it after {@link #kill()}: nothing is mounted. */
  void restart() {
    engine.startContainerCmd(id()).exec();
  }

  /** Takes its link away. */
  void disconnect() {
    engine.disconnectFromNetworkCmd().withContainerId(id()).withNetworkId(network.getId()).exec();
  }

  /** Gives it a link again with the name and address that it had. */
  void reconnect() {
    ContainerNetwork same =
        new ContainerNetwork()
            .withAliases(alias)
            .withIpamConfig(new ContainerNetwork.Ipam().withIpv4Address(address));
    engine
        .connectToNetworkCmd()
        .withContainerId(id())
        .withNetworkId(network.getId())
        .withContainerNetwork(same)
        .exec();
  }

  @Override
  public String toString() {
    return alias + " (" + address + ")";
  }
}
