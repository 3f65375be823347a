package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.testcontainers.DockerClientFactory;

/** That containers are what tests of several nodes take them for. */
@Tag("docker")
@OnRequest("cluster")
final class ContainersIT {
  private static final int PORT = 7000;
  private static final Duration SOON = Duration.ofSeconds(30);

  private Scratch scratch;
  private Dataset dataset;
  private Containers containers;

  @BeforeEach
  void start() {
    Containers.require();
    scratch = new Scratch();
    dataset = Dataset.create(scratch.directory("source"), Dataset.sizes(20, 100_000));
    containers = new Containers(2, dataset.root());
  }

  @AfterEach
  void remove() {
    if (containers != null) {
      containers.close();
    }
    if (scratch != null) {
      scratch.close();
    }
  }

  @Test
  void mounts_ofOneSource_serveItsBytesAndOutliveAKill() {
    assertThat(inodes(containers.get(0), Containers.SOURCE))
        .hasLineCount(20)
        .isEqualTo(inodes(containers.get(1), Containers.SOURCE));
    for (ContainerNode node : containers.all()) {
      node.mount();
      assertServesTheDataset(node);
      awaitCopies(node);
    }
    assertThat(containers.sum("sourceOperations.bytes")).isEqualTo(2 * dataset.bytes());

    ContainerNode killed = containers.get(0);
    killed.kill();
    Await.until("killed", SOON, () -> !killed.isRunning());
    assertThat(containers.sum("sourceOperations.bytes")).isEqualTo(dataset.bytes());
    killed.restart();
    assertThat(fuseMounts(killed)).isEmpty();
    killed.mount();
    assertServesTheDataset(killed);
    assertThat(killed.status().number("sourceOperations.bytes")).as("from its tier").isZero();

    killed.run("pmfs", "umount", ContainerNode.MOUNTPOINT).expect(0);
    assertThat(fuseMounts(killed)).isEmpty();
  }

  @Test
  void faults_areSeenByTheOthersAndPass() {
    ContainerNode server = containers.get(0);
    ContainerNode client = containers.get(1);
    server.startProgram("/tmp/echo", List.of(EchoServer.class), Integer.toString(PORT));
    Await.until("server", SOON, () -> answers(client, server.alias()));
    assertThat(answers(client, server.address())).isTrue();

    server.pause();
    assertThat(answers(client, server.alias())).as("paused").isFalse();
    server.unpause();
    Await.until("unpaused", SOON, () -> answers(client, server.alias()));

    server.disconnect();
    assertThat(answers(client, server.address())).as("disconnected").isFalse();
    server.reconnect();
    Await.until("the same address", SOON, () -> answers(client, server.address()));
    Await.until("the same name", SOON, () -> answers(client, server.alias()));
  }

  @Test
  void close_leavesNothing() {
    List<String> ids = containers.all().stream().map(ContainerNode::id).toList();
    containers.get(0).mount();
    containers.get(0).pause();
    containers.close();
    assertThat(DockerClientFactory.instance().client().listContainersCmd().withShowAll(true).exec())
        .noneMatch(container -> ids.contains(container.getId()));
  }

  /** Whether a server sends back what it is sent, within three seconds. */
  private static boolean answers(ContainerNode from, String host) {
    String talk = "exec 3<>/dev/tcp/" + host + "/" + PORT + " && echo hello >&3 && head -n 1 <&3";
    return from.run("timeout", "3", "bash", "-c", talk).out().equals("hello\n");
  }

  private void assertServesTheDataset(ContainerNode node) {
    String compare = "find . -type f | xargs -I{} cmp {} " + ContainerNode.MOUNTPOINT + "/{}";
    node.run("sh", "-c", "cd " + Containers.SOURCE + " && " + compare).expect(0);
    assertThat(inodes(node, ContainerNode.MOUNTPOINT)).hasLineCount(dataset.items().size());
  }

  private void awaitCopies(ContainerNode node) {
    Await.until(
        "copies of all files",
        SOON,
        () -> node.status().number("tiers.0.copies") == dataset.items().size());
  }

  private static String inodes(ContainerNode node, String directory) {
    String line = "find " + directory + " -type f -printf '%i %p\\n' | sort -k 2";
    return node.run("sh", "-c", line).expect(0).out();
  }

  private static String fuseMounts(ContainerNode node) {
    return node.run("sh", "-c", "grep ' fuse' /proc/mounts || true").expect(0).out();
  }
}
