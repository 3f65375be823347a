package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** That nodes in network namespaces are what tests of several nodes take them for. */
@OnRequest("cluster")
final class NodesIT {
  private static final int CONNECT_MS = 500;
  private static final Duration SOON = Duration.ofSeconds(30);

  private Scratch scratch;
  private Nodes nodes;

  @BeforeEach
  void make() {
    nodes = new Nodes(4);
    scratch = new Scratch();
  }

  @AfterEach
  void remove() {
    if (scratch != null) {
      scratch.close();
    }
    if (nodes != null) {
      nodes.close();
    }
  }

  @Test
  void nodes_reachEachOtherAndAreReachedAtTheirAddressOnly() throws Exception {
    for (Node server : nodes.all()) {
      try (ServerSocket listening = listen(server)) {
        for (Node client : nodes.all()) {
          assertThat(reaches(client, server, listening)).as("%s to %s", client, server).isTrue();
        }
        InetAddress loopback = InetAddress.getLoopbackAddress();
        InetSocketAddress there = new InetSocketAddress(loopback, listening.getLocalPort());
        Node other = nodes.get(server == nodes.get(0) ? 1 : 0);
        assertThatThrownBy(() -> other.call(() -> connect(there))).isInstanceOf(IOException.class);
      }
    }
  }

  @Test
  void cut_losesWhatIsSentUntilItIsMended() throws Exception {
    Node server = nodes.get(0);
    try (ServerSocket listening = listen(server);
        Socket open = connected(nodes.get(1), server, listening);
        Socket accepted = listening.accept()) {
      accepted.setSoTimeout(CONNECT_MS);
      nodes.get(1).cut();
      assertThat(reaches(nodes.get(1), server, listening)).isFalse();
      assertThat(reaches(nodes.get(2), server, listening)).as("another one").isTrue();
      open.getOutputStream().write(7);
      // No reset: whoever waits is not told.
      assertThatThrownBy(() -> accepted.getInputStream().read())
          .isInstanceOf(SocketTimeoutException.class);
      nodes.get(1).mend();
      accepted.setSoTimeout((int) SOON.toMillis());
      assertThat(accepted.getInputStream().read()).as("sent again").isEqualTo(7);
    }
  }

  @Test
  void split_leavesTwoNetworksUntilItIsHealed() throws Exception {
    nodes.split(List.of(nodes.get(2), nodes.get(3)));
    try (ServerSocket left = listen(nodes.get(0));
        ServerSocket right = listen(nodes.get(2))) {
      assertThat(reaches(nodes.get(1), nodes.get(0), left)).isTrue();
      assertThat(reaches(nodes.get(3), nodes.get(2), right)).isTrue();
      assertThat(reaches(nodes.get(1), nodes.get(2), right)).isFalse();
      assertThat(reaches(nodes.get(3), nodes.get(0), left)).isFalse();
      nodes.heal();
      Await.until("healed", SOON, () -> reaches(nodes.get(3), nodes.get(0), left));
    }
  }

  @Test
  void throttle_letsNoMorePassInEachDirection() throws Exception {
    Nodes.requireThrottle();
    int bytesPerSecond = 1_000_000;
    nodes.get(0).throttle(bytesPerSecond);
    for (int sender = 0; sender < 2; sender++) {
      long nanos = timeToSend(2 * bytesPerSecond, nodes.get(sender), nodes.get(1 - sender));
      assertThat(nanos).as("from %d", sender).isGreaterThan(1_000_000_000L);
    }
    nodes.get(0).unthrottle();
    assertThat(nodes.get(0).run("tc", "qdisc", "show", "dev", Nodes.LINK).expect(0).out())
        .doesNotContain("tbf");
  }

  @Test
  void mounts_ofOneSourceOnAllNodes_serveItsBytesAndAreCounted() throws IOException {
    Machine.requireFuse();
    Dataset dataset = Dataset.create(scratch.directory("source"), Dataset.sizes(20, 100_000));
    nodes.mount(dataset.root(), node -> List.of());
    for (Node node : nodes.all()) {
      dataset.assertEqualBelow(node.mounted().mountpoint());
      node.mounted().awaitCopies(20);
      assertThat(Files.readSymbolicLink(Path.of("/proc/" + node.mounted().pid() + "/ns/net")))
          .as("the daemon is on its node")
          .hasToString(node.run("readlink", "/proc/self/ns/net").out().strip());
    }
    // Each for itself: none of them knows of the others.
    assertThat(nodes.sum("sourceOperations.bytes")).isEqualTo(4 * dataset.bytes());

    Node restarted = nodes.get(0);
    restarted.mounted().killDaemon();
    restarted.mounted().awaitSuccessor(restarted.mounted().pid());
    restarted.kill9();
    restarted.mount(dataset.root());
    dataset.assertEqualBelow(restarted.mounted().mountpoint());
    assertThat(restarted.mounted().status().number("sourceOperations.bytes")).isZero();
    assertThat(nodes.sum("sourceOperations.bytes")).isEqualTo(3 * dataset.bytes());

    List<Long> daemons = nodes.all().stream().map(node -> node.mounted().daemon()).toList();
    List<Path> roots = nodes.all().stream().map(node -> node.pmfs().scratch().root()).toList();
    nodes.close();
    assertThat(daemons).noneMatch(MountedPmfs::runs);
    assertThat(roots).noneMatch(Files::exists);
    assertThat(Command.run("ip", "netns", "list").out()).doesNotContain(nodes.name());
  }

  @Test
  void killedTest_isClearedAwayByTheNext() throws IOException {
    Machine.requireFuse();
    // No process has this number: the largest there can be is 4194304, proc(5).
    String stale = TestRun.PREFIX + TestRun.place() + ".4194305.1.1.node1";
    Nodes.ip("netns", "add", stale);
    Installation left =
        new Installation(
            Installation.launcherOfCheckout(), List.of("nsenter", "--net=" + Nodes.file(stale)));
    Dataset dataset = Dataset.create(scratch.directory("source"), 1000);
    MountedPmfs mount = left.mount(dataset.root());
    new Nodes(1).close();
    mount.ended();
    assertThat(Mounts.at(mount.mountpoint())).isFalse();
    assertThat(MountedPmfs.runs(mount.pid())).isFalse();
    assertThat(left.scratch().root()).doesNotExist();
    assertThat(Nodes.file(stale)).doesNotExist();
    left.close();
  }

  private static ServerSocket listen(Node node) throws Exception {
    return node.call(() -> new ServerSocket(0));
  }

  private static Socket connect(InetSocketAddress to) throws IOException {
    Socket socket = new Socket();
    try {
      socket.connect(to, CONNECT_MS);
      return socket;
    } catch (IOException e) {
      socket.close();
      throw e;
    }
  }

  private static Socket connected(Node from, Node to, ServerSocket listening) throws Exception {
    int port = listening.getLocalPort();
    return from.call(() -> connect(new InetSocketAddress(to.address(), port)));
  }

  private static boolean reaches(Node from, Node to, ServerSocket listening) {
    try (Socket socket = connected(from, to, listening);
        Socket accepted = listening.accept()) {
      return socket.getLocalPort() == accepted.getPort();
    } catch (IOException e) {
      return false;
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  private static long timeToSend(int count, Node from, Node to) throws Exception {
    try (ServerSocket listening = listen(to);
        Socket sender = connected(from, to, listening);
        Socket receiver = listening.accept()) {
      long start = System.nanoTime();
      Thread sending =
          new Thread(
              () -> {
                try (OutputStream out = sender.getOutputStream()) {
                  out.write(new byte[count]);
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
              });
      sending.start();
      InputStream in = receiver.getInputStream();
      assertThat(in.transferTo(OutputStream.nullOutputStream())).isEqualTo(count);
      sending.join();
      return System.nanoTime() - start;
    }
  }
}
