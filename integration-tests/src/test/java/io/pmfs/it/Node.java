package io.pmfs.it;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.jspecify.annotations.Nullable;

/**
 * A computer as far as the network goes: a namespace with one address, behind a port of a switch,
 * and a pmfs with its own directories. Files and processes are those of the machine, so the test
 * sees its mount. {@link Nodes} makes and removes it.
 */
final class Node {
  /** CLONE_NEWNET of linux/sched.h. */
  private static final int NETWORK = 0x40000000;

  /** A token bucket holds at least a packet as large as the kernel hands them on. */
  private static final long LEAST_BURST = 64 << 10;

  /** Several nodes share the processors of one machine. */
  private static final Duration LIFETIME = Duration.ofMinutes(15);

  private final String namespace;
  private final String switchNamespace;
  private final String port;
  private final String address;
  private final Installation pmfs;

  /** What runs a command on this node. Unlike {@code ip netns exec} it leaves /sys alone. */
  private final List<String> prefix = new ArrayList<>();

  private @Nullable MountedPmfs mounted;

  Node(String namespace, String switchNamespace, String port, String address) {
    this.namespace = namespace;
    this.switchNamespace = switchNamespace;
    this.port = port;
    this.address = address;
    this.prefix.addAll(List.of("nsenter", "--net=" + Nodes.file(namespace)));
    this.pmfs = new Installation(Installation.launcherOfCheckout(), prefix);
  }

  /** The same computer with another pmfs, which the caller closes. */
  Node beside() {
    return new Node(namespace, switchNamespace, port, address);
  }

  String address() {
    return address;
  }

  /** Its pmfs, whose tiers and state stay from one mount to the next. */
  Installation pmfs() {
    return pmfs;
  }

  /** From now on its commands see what is mounted where a process is. */
  void enterMounts(long process) {
    prefix.add("--mount=/proc/" + process + "/ns/mnt");
  }

  private List<String> line(String... line) {
    List<String> all = new ArrayList<>(prefix);
    all.addAll(Arrays.asList(line));
    return all;
  }

  /** Runs a command to its end. */
  Command run(String... line) {
    return Command.run(Map.of(), Command.DEADLINE, line(line));
  }

  /** Starts a command; it ends with the nodes at the latest. */
  Process start(ProcessBuilder.Redirect output, String... line) {
    return start(Command.builder(Map.of(), line(line)).redirectOutput(output));
  }

  /** The same with a command that the caller talks with. */
  Process startTalking(String... line) {
    return start(Command.builder(Map.of(), line(line)).redirectInput(ProcessBuilder.Redirect.PIPE));
  }

  private static Process start(ProcessBuilder builder) {
    try {
      return builder.redirectErrorStream(true).start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Runs code of the test in a thread that is on this node: a socket that it makes itself belongs
   * to this node from then on, whoever uses it.
   */
  <T> T call(Callable<T> work) throws Exception {
    FutureTask<T> task =
        new FutureTask<>(
            () -> {
              enter();
              return work.call();
            });
    Thread thread = new Thread(task, "on " + namespace);
    thread.setDaemon(true);
    thread.start();
    try {
      return task.get();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof Exception cause) {
        throw cause;
      }
      throw e;
    }
  }

  private void enter() {
    Posix.check(
        Posix.withFile(
            Nodes.file(namespace).toString(),
            Posix.O_RDONLY,
            fd -> Posix.result(Posix.LIBC.setns(fd, NETWORK))));
  }

  /** Mounts in the background; again after {@link #kill9()}, it is a node that was restarted. */
  MountedPmfs mount(Path source, String... options) {
    MountedPmfs mount = pmfs.mount(LIFETIME, source, options);
    mounted = mount;
    return mount;
  }

  MountedPmfs mounted() {
    MountedPmfs mount = mounted;
    if (mount == null) {
      throw new IllegalStateException("nothing was mounted on " + address);
    }
    return mount;
  }

  void unmount() {
    mounted().close();
    mounted = null;
  }

  /** Ends its daemon, and who would start it again, as a computer does that loses power. */
  void kill9() {
    mounted().kill9();
    mounted = null;
  }

  boolean isMounted() {
    return mounted != null;
  }

  /** Pulls the cable: packets are lost, and nobody is told. */
  void cut() {
    Nodes.ip("-n", switchNamespace, "link", "set", port, "down");
  }

  void mend() {
    Nodes.ip("-n", switchNamespace, "link", "set", port, "up");
  }

  /** Plugs the cable into a switch of this name. */
  void plugInto(String bridge) {
    Nodes.ip("-n", switchNamespace, "link", "set", port, "master", bridge);
  }

  /** Lets so many bytes a second, headers included, pass in each direction. */
  void throttle(long bytesPerSecond) {
    Nodes.requireThrottle();
    String rate = bytesPerSecond + "bps";
    String burst = Long.toString(Math.max(LEAST_BURST, bytesPerSecond / 50));
    for (List<String> end : ends()) {
      List<String> line = new ArrayList<>(List.of("tc", "-n", end.get(0)));
      line.addAll(List.of("qdisc", "replace", "dev", end.get(1), "root", "tbf"));
      line.addAll(List.of("rate", rate, "burst", burst, "latency", "200ms"));
      Command.run(line.toArray(String[]::new)).expect(0);
    }
  }

  void unthrottle() {
    for (List<String> end : ends()) {
      Command.run("tc", "-n", end.get(0), "qdisc", "del", "dev", end.get(1), "root").expect(0);
    }
  }

  /** Both ends of its cable. */
  private List<List<String>> ends() {
    return List.of(List.of(switchNamespace, port), List.of(namespace, Nodes.LINK));
  }

  @Override
  public String toString() {
    return namespace + " (" + address + ")";
  }
}
