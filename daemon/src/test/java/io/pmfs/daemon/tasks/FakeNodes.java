package io.pmfs.daemon.tasks;

import io.pmfs.cluster.client.Peers;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.daemon.control.NodeResource;
import io.pmfs.daemon.report.SampleReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.tasks.ScratchFiles;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** Nodes of a cluster in one process: their requests to each other are method calls. */
public final class FakeNodes {
  private static final int MAX_BODY_BYTES = 1 << 20;

  private final Map<String, Node> nodes = new LinkedHashMap<>();
  final List<String> asked = Collections.synchronizedList(new ArrayList<>());

  /** One node and its successive daemons. */
  public final class Node implements Peers {
    private final UUID id = UUID.randomUUID();
    private final String name;
    private long instance;
    private volatile @Nullable NodeRequests door;

    /** The tasks of the latest daemon. */
    FakeTasks fakes = new FakeTasks();

    KeptTasks tasks = new KeptTasks(fakes, null);

    /** Whether it ignores requests although it counts as alive. */
    public volatile boolean isSilent;

    Node(String name) {
      this.name = name;
    }

    Member member() {
      return new Member(id, instance, name, "127.0.0.1", 4000 + (int) instance);
    }

    @Override
    public List<Member> others() {
      return nodes.values().stream()
          .filter(node -> node != this && node.door != null)
          .map(Node::member)
          .toList();
    }

    @Override
    public String call(Member peer, String method, String path, String body) throws PeerException {
      asked.add(name + " " + peer.name() + " " + method + " " + path);
      Node node = nodes.get(peer.name());
      NodeRequests answers = node == null ? null : node.door;
      if (node == null || answers == null || node.isSilent || node.instance != peer.instance()) {
        throw new PeerException(PeerException.Kind.UNREACHABLE, peer + " is silent");
      }
      if (body.getBytes(StandardCharsets.UTF_8).length > MAX_BODY_BYTES) {
        throw new PeerException(PeerException.Kind.REFUSED, peer + " answered 413: too large");
      }
      NodeRequests.Answer answer = answers.answer(method, path, body);
      if (answer.status() == 200) {
        return answer.json();
      }
      throw new PeerException(
          answer.status() == 400 ? PeerException.Kind.REFUSED : PeerException.Kind.FAILED,
          peer + " answered " + answer.status() + ": " + answer.json());
    }

    /** Starts a daemon that keeps its task in a file, or nowhere. */
    void start(@Nullable Path file) {
      fakes = new FakeTasks();
      ScratchFiles scratch = new ScratchFiles(List.of());
      tasks =
          new KeptTasks(
              fakes,
              new PeerTasks(this, scratch, Duration.ofMillis(20)),
              new TaskLists(null, scratch),
              file);
      instance++;
      door = new NodeResource(this::status, tasks);
    }

    public StatusReport status() {
      return SampleReport.inCluster(name);
    }

    /** Its answers so far. */
    public NodeRequests leave() {
      NodeRequests last = door();
      door = null;
      return last;
    }

    NodeRequests door() {
      return Objects.requireNonNull(door);
    }

    public void answersWith(NodeRequests requests) {
      door = requests;
    }
  }

  public Node add(String name) {
    Node node = new Node(name);
    node.start(null);
    nodes.put(name, node);
    return node;
  }
}
