package io.pmfs.it;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * Computers on one switch, all of them network namespaces of this machine, for which it takes root.
 * The switch has a namespace, too: the machine's own addresses and links stay as they are, nodes
 * reach each other and nobody else, and tests at the same time do not meet. Close removes all of
 * it; what a killed test left is removed by the next.
 */
final class Nodes implements AutoCloseable {
  /** The name of each node's link. */
  static final String LINK = "eth0";

  private static final Path NAMESPACES = Path.of("/run/netns");

  private static final String SWITCH = "switch0";
  private static final String OTHER_SWITCH = "switch1";

  private final String name;
  private final List<Node> nodes = new ArrayList<>();
  private final Thread atExit = new Thread(this::removeNamespaces, "remove nodes");

  /** Makes nodes that reach each other. */
  Nodes(int count) {
    require();
    removeStale();
    name = TestRun.newName();
    Runtime.getRuntime().addShutdownHook(atExit);
    String hub = name + ".switch";
    try {
      ip("netns", "add", hub);
      for (String bridge : List.of(SWITCH, OTHER_SWITCH)) {
        ip("-n", hub, "link", "add", bridge, "type", "bridge");
        ip("-n", hub, "link", "set", bridge, "up");
      }
      for (int index = 1; index <= count; index++) {
        nodes.add(plugIn(hub, name + ".node" + index, "port" + index, "198.18.0." + index));
      }
    } catch (RuntimeException | AssertionError e) {
      close();
      throw e;
    }
  }

  private static Node plugIn(String hub, String namespace, String port, String address) {
    ip("netns", "add", namespace);
    ip("-n", hub, "link", "add", port, "type", "veth", "peer", "name", LINK, "netns", namespace);
    ip("-n", hub, "link", "set", port, "master", SWITCH, "up");
    ip("-n", namespace, "addr", "add", address + "/24", "dev", LINK);
    ip("-n", namespace, "link", "set", "lo", "up");
    ip("-n", namespace, "link", "set", LINK, "up");
    return new Node(namespace, hub, port, address);
  }

  /** What is not there is named as the reason why the test is skipped. */
  static void require() {
    Machine.requireRoot();
    for (String command : List.of("ip", "nsenter", "unshare")) {
      Machine.requireCommand(command);
    }
    Command tried = Command.run("unshare", "--net", "ip", "link", "add", "type", "veth");
    assumeTrue(
        tried.exit() == 0, () -> "needs network namespaces with veth: " + tried.err().strip());
  }

  static void requireThrottle() {
    Machine.requireCommand("tc");
    String line = "tc qdisc add dev lo root tbf rate 1mbit burst 10kb latency 50ms";
    Command tried = Command.run("unshare", "--net", "sh", "-c", "ip link set lo up && " + line);
    assumeTrue(tried.exit() == 0, () -> "needs tc with tbf: " + tried.err().strip());
  }

  static void ip(String... arguments) {
    List<String> line = new ArrayList<>(List.of("ip"));
    line.addAll(List.of(arguments));
    Command.run(line.toArray(String[]::new)).expect(0);
  }

  static Path file(String namespace) {
    return NAMESPACES.resolve(namespace);
  }

  String name() {
    return name;
  }

  /** From 0 up. */
  Node get(int index) {
    return nodes.get(index);
  }

  List<Node> all() {
    return List.copyOf(nodes);
  }

  /** Mounts a source on all nodes at the same time. */
  void mount(Path source, Function<Node, List<String>> options) {
    Stream<CompletableFuture<Void>> mounts =
        nodes.stream()
            .map(
                node ->
                    CompletableFuture.runAsync(
                        () -> node.mount(source, options.apply(node).toArray(String[]::new)),
                        task -> new Thread(task, "mount on " + node).start()));
    CompletableFuture.allOf(mounts.toArray(CompletableFuture[]::new)).join();
  }

  /**
   * What the daemons of all mounted nodes count at a path of their status, in sum: what the source
   * was asked for is {@code sourceOperations.opens}, {@code .reads}, {@code .bytes}, {@code .lists}
   * or {@code .total}. A daemon counts from its start, so what one did that was killed is missing.
   */
  long sum(String path) {
    return nodes.stream()
        .filter(Node::isMounted)
        .mapToLong(node -> node.mounted().status().number(path))
        .sum();
  }

  /** Two networks: these nodes reach each other, the rest reach each other. */
  void split(List<Node> apart) {
    apart.forEach(node -> node.plugInto(OTHER_SWITCH));
  }

  void heal() {
    nodes.forEach(node -> node.plugInto(SWITCH));
  }

  @Override
  public void close() {
    Throwable failure = null;
    for (Node node : nodes) {
      try {
        node.pmfs().close();
      } catch (RuntimeException | AssertionError e) {
        failure = failure == null ? e : failure;
      }
    }
    nodes.clear();
    removeNamespaces();
    Runtime.getRuntime().removeShutdownHook(atExit);
    if (failure != null) {
      throw new AssertionError("nodes were not removed cleanly", failure);
    }
  }

  private void removeNamespaces() {
    namespaces().stream().filter(space -> space.startsWith(name + ".")).forEach(Nodes::remove);
  }

  private static void removeStale() {
    namespaces().stream().filter(TestRun::isStale).forEach(Nodes::remove);
  }

  private static List<String> namespaces() {
    if (!Files.isDirectory(NAMESPACES)) {
      return List.of();
    }
    try (Stream<Path> files = Files.list(NAMESPACES)) {
      return files.map(file -> file.getFileName().toString()).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** With the processes in it, what they mounted and the directories of their installation. */
  private static void remove(String namespace) {
    List<Long> pids = processes(namespace);
    Set<Path> scratches = new HashSet<>();
    pids.forEach(pid -> scratchOf(pid).ifPresent(scratches::add));
    pids.forEach(pid -> Command.run("kill", "-KILL", Long.toString(pid)));
    Await.until(
        () -> "no process in " + namespace,
        Duration.ofSeconds(30),
        () -> processes(namespace).isEmpty());
    for (Path scratch : scratches) {
      Mounts.below(scratch).forEach(mount -> MountedPmfs.detach(Path.of(mount)));
      Faults.delete(scratch);
    }
    Command.run("ip", "netns", "del", namespace);
  }

  private static List<Long> processes(String namespace) {
    return Command.run("ip", "netns", "pids", namespace).out().lines().map(Long::valueOf).toList();
  }

  /** The directory of the installation that a daemon or supervisor belongs to. */
  private static Optional<Path> scratchOf(long pid) {
    String variable = "PMFS_RUNTIME_DIR=";
    try {
      String environment = Files.readString(Path.of("/proc/" + pid + "/environ"), ISO_8859_1);
      return Stream.of(environment.split("\0", -1))
          .filter(entry -> entry.startsWith(variable))
          .map(entry -> Path.of(entry.substring(variable.length())).getParent())
          .filter(Scratch::isOne)
          .findFirst();
    } catch (IOException e) {
      return Optional.empty();
    }
  }
}
