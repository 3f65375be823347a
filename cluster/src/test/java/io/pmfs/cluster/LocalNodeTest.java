package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.cluster.members.Attendance;
import io.pmfs.cluster.members.ClusterSecret;
import io.pmfs.cluster.members.ClusterSettings;
import io.pmfs.cluster.members.GroupTimings;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.View;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.cluster.server.OutputRequests;
import io.pmfs.cluster.server.PeerServerStatistics;
import io.pmfs.posix.Await;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Nodes without a dataset, in one process on 127.0.0.1. */
@Timeout(300)
final class LocalNodeTest {
  private static final Duration PATIENCE = Duration.ofSeconds(90);
  private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();
  private static final Duration LOOK = Duration.ofMillis(200);

  @TempDir private Path directory;

  private final String cluster = "test-" + UUID.randomUUID();
  private final List<LocalNode> nodes = new ArrayList<>();
  private final AtomicInteger changes = new AtomicInteger();

  @AfterEach
  void close() {
    nodes.forEach(LocalNode::close);
  }

  private Attendance attendance(String name) throws IOException {
    Path state = Files.createDirectories(directory.resolve(name));
    return new Attendance(state, List.of(), name, LOOPBACK, false, InstantSource.system(), LOOK);
  }

  private LocalNode node(String name, Attendance attendance) {
    ClusterSettings group =
        new ClusterSettings(
            cluster,
            LOOPBACK,
            List.of(LOOPBACK.getHostAddress()),
            null,
            ClusterSecret.ofText("the secret of the test", "secret"),
            GroupTimings.DEFAULTS);
    LocalNode node = new LocalNode(group, name, null, directory.resolve(name), attendance);
    nodes.add(node);
    return node;
  }

  private void open(LocalNode node) throws Exception {
    node.open(
        new NoDataset(),
        NodeRequests.NONE,
        OutputRequests.NONE,
        PATIENCE,
        changes::incrementAndGet);
  }

  private static List<String> others(LocalNode node) {
    return node.others().stream().map(Member::name).toList();
  }

  @Test
  void node_thatHasNotJoined_seesNobodyAndHasAnsweredNothing() throws Exception {
    LocalNode node = node("a", attendance("a"));
    assertThat(node.view()).isEqualTo(new View(List.of()));
    assertThat(node.others()).isEmpty();
    assertThat(node.statistics()).isEqualTo(PeerServerStatistics.NONE);
    node.sayGoodbye();
    node.close();
    node.close();
  }

  @Test
  void nodes_seeEachOther_andWhetherOneLeftOrIsMissing() throws Exception {
    Attendance roll = attendance("a");
    LocalNode first = node("a", roll);
    open(first);
    assertThat(changes).hasPositiveValue();
    LocalNode second = node("b", attendance("b"));
    LocalNode third = node("c", attendance("c"));
    open(second);
    open(third);
    Await.until("the first sees both", PATIENCE, () -> others(first).size() == 2);
    assertThat(others(first)).containsExactlyInAnyOrder("b", "c");
    assertThat(first.view().members()).extracting(Member::id).contains(first.id(), second.id());
    int before = changes.get();
    second.sayGoodbye();
    second.close();
    third.close();
    Await.until("the first is alone", PATIENCE, () -> others(first).isEmpty());
    assertThat(changes).hasValueGreaterThan(before);
    assertThat(roll.roll().missing()).extracting("node").containsExactly("c");
  }

  /** The id is the state's; the number of its start tells others that it is another process. */
  @Test
  void node_thatStartsAgain_isTheSameOne() throws Exception {
    LocalNode first = node("a", attendance("a"));
    open(first);
    Member before = first.view().members().get(0);
    first.close();
    try (Socket socket = new Socket()) {
      assertThatThrownBy(() -> socket.connect(new InetSocketAddress(LOOPBACK, before.port())))
          .isInstanceOf(ConnectException.class);
    }
    LocalNode second = node("a", attendance("a"));
    open(second);
    assertThat(second.id()).isEqualTo(first.id());
    assertThat(second.view().members().get(0).instance()).isGreaterThan(before.instance());
  }
}
