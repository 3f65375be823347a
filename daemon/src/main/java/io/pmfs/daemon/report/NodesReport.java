package io.pmfs.daemon.report;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.Peers;
import io.pmfs.settings.TimeSpan;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * All nodes of a cluster, as {@code pmfs status --all-nodes --json} prints them. Names are stable;
 * fields are added, never changed.
 *
 * @param nodes this node first
 * @param sum the sum of the nodes that answered
 */
public record NodesReport(String mountpoint, String cluster, List<NodeReport> nodes, Counts sum) {
  private static final int MOST_AT_ONCE = 32;

  /**
   * One node.
   *
   * @param error why counts are missing; null if there are counts
   */
  public record NodeReport(
      String node, String address, @Nullable String error, @Nullable Counts counts) {}

  /**
   * The copies of a node, and its counts since it was mounted.
   *
   * @param share the part of the files that it holds for all, 0 to 1
   * @param copies copies in its tiers, which take usedBytes of capacityBytes
   * @param bytesRead bytes read by its applications
   * @param bytesFromTiers of these, bytes from its tiers
   * @param bytesFromPeers contents from other nodes, for readers and for copies
   * @param bytesFromSource contents from the source, likewise
   * @param bytesServed bytes sent to other nodes
   */
  public record Counts(
      double share,
      long copies,
      long usedBytes,
      long capacityBytes,
      long bytesRead,
      long bytesFromTiers,
      long bytesFromPeers,
      long bytesFromSource,
      long sourceOperations,
      long bytesServed) {
    private static final Counts NONE = new Counts(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

    static Counts of(StatusReport report, ClusterReport cluster) {
      return new Counts(
          cluster.share(),
          report.tiers().stream().mapToLong(TierReport::copies).sum(),
          report.tiers().stream().mapToLong(TierReport::usedBytes).sum(),
          report.tiers().stream().mapToLong(TierReport::capacityBytes).sum(),
          report.reads().bytes(),
          report.reads().fromTiers(),
          cluster.bytesFromPeers(),
          report.sourceOperations().bytes(),
          report.sourceOperations().total(),
          cluster.served().bytes());
    }

    Counts plus(Counts other) {
      return new Counts(
          share + other.share,
          copies + other.copies,
          usedBytes + other.usedBytes,
          capacityBytes + other.capacityBytes,
          bytesRead + other.bytesRead,
          bytesFromTiers + other.bytesFromTiers,
          bytesFromPeers + other.bytesFromPeers,
          bytesFromSource + other.bytesFromSource,
          sourceOperations + other.sourceOperations,
          bytesServed + other.bytesServed);
    }
  }

  /**
   * Asks all nodes in parallel.
   *
   * @param own this node's status
   * @param limit the time for all nodes together; later answers are ignored
   */
  public static NodesReport ask(
      StatusReport own, ClusterReport cluster, Peers peers, Duration limit)
      throws InterruptedException {
    List<Member> others = peers.others();
    List<NodeReport> nodes = new ArrayList<>();
    nodes.add(
        cluster.members().stream()
            .filter(ClusterReport.MemberReport::self)
            .findFirst()
            .map(self -> new NodeReport(self.node(), self.address(), null, Counts.of(own, cluster)))
            .orElse(new NodeReport("this node", "", null, Counts.of(own, cluster))));
    if (!others.isEmpty()) {
      nodes.addAll(answers(others, peers, limit));
    }
    Counts sum =
        nodes.stream()
            .map(NodeReport::counts)
            .filter(Objects::nonNull)
            .reduce(Counts.NONE, Counts::plus);
    return new NodesReport(own.mountpoint(), cluster.name(), nodes, sum);
  }

  private static List<NodeReport> answers(List<Member> others, Peers peers, Duration limit)
      throws InterruptedException {
    ExecutorService threads =
        Executors.newFixedThreadPool(
            Math.min(MOST_AT_ONCE, others.size()), new DefaultThreadFactory("all-nodes", true));
    try {
      List<Future<NodeReport>> answers =
          threads.invokeAll(
              others.stream().map(peer -> (Callable<NodeReport>) () -> ask(peer, peers)).toList(),
              limit.toMillis(),
              TimeUnit.MILLISECONDS);
      List<NodeReport> nodes = new ArrayList<>();
      for (int i = 0; i < answers.size(); i++) {
        nodes.add(answer(answers.get(i), others.get(i), limit));
      }
      return nodes;
    } finally {
      threads.shutdownNow();
    }
  }

  private static NodeReport answer(Future<NodeReport> answer, Member peer, Duration limit)
      throws InterruptedException {
    try {
      return answer.get();
    } catch (CancellationException e) {
      return silent(peer, "no answer within " + TimeSpan.format(limit));
    } catch (ExecutionException e) {
      return silent(peer, String.valueOf(e.getCause()));
    }
  }

  private static NodeReport ask(Member peer, Peers peers) {
    try {
      StatusReport report =
          new Gson().fromJson(peers.call(peer, "GET", "node", ""), StatusReport.class);
      ClusterReport cluster = report == null ? null : report.cluster();
      if (report == null
          || cluster == null
          || cluster.served() == null
          || report.tiers() == null
          || report.reads() == null
          || report.sourceOperations() == null) {
        return silent(peer, "its answer is not the status of a node");
      }
      return new NodeReport(peer.name(), peer.host(), null, Counts.of(report, cluster));
    } catch (PeerException e) {
      return silent(peer, PeerReason.of(e));
    } catch (JsonSyntaxException e) {
      return silent(peer, "its answer is not the status of a node");
    }
  }

  private static NodeReport silent(Member peer, String why) {
    return new NodeReport(peer.name(), peer.host(), why, null);
  }

  public boolean isWhole() {
    return nodes.stream().allMatch(node -> node.error() == null);
  }
}
