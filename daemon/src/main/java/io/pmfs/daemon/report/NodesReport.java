package io.pmfs.daemon.report;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.pmfs.cluster.client.Peers;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.machine.TimeSpan;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentLinkedQueue;
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
 * @param expected how many nodes are present or missing
 * @param missing the expected nodes that this node, or one that answered, does not see; null in the
 *     answer of an older daemon
 * @param owner the host of the node that owns all names of a writable mount; else null
 */
public record NodesReport(
    String mountpoint,
    String cluster,
    List<NodeReport> nodes,
    Counts sum,
    int expected,
    @Nullable List<MissingNode> missing,
    @Nullable String owner) {
  private static final int MOST_AT_ONCE = 32;

  /**
   * One node.
   *
   * @param error why there are no counts; null if there are
   * @param owner whether it owns all names of a writable mount
   * @param outputs how far the source is behind, according to this node; null unless writable
   */
  public record NodeReport(
      String node,
      String address,
      @Nullable String error,
      @Nullable Counts counts,
      boolean owner,
      @Nullable OutputsReport outputs) {
    static NodeReport of(String node, String address, StatusReport report, ClusterReport cluster) {
      boolean isOwner =
          cluster.owner() != null
              && cluster.members().stream().anyMatch(one -> one.self() && one.share() > 0);
      return new NodeReport(
          node, address, null, Counts.of(report, cluster), isOwner, report.outputs());
    }
  }

  /** The missing nodes; empty in the answer of an older daemon. */
  public List<MissingNode> absent() {
    return missing == null ? List.of() : missing;
  }

  /** A message about missing nodes; null if none are missing. */
  public @Nullable String absence() {
    return MissingNode.text(expected, absent());
  }

  public boolean isWritable() {
    return owner != null;
  }

  /**
   * The copies of a node, and its counts since it was mounted.
   *
   * @param share the fraction of the files that the node owns, 0 to 1
   * @param copies copies in its tiers, of size {@code usedBytes}
   * @param bytesRead bytes read by its applications
   * @param bytesFromTiers of these, bytes from its tiers
   * @param bytesFromPeers contents from other nodes, for readers and for copies
   * @param bytesFromSource contents from the source, for readers and for copies
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
          report.dataset().tiers().stream().mapToLong(TierReport::copies).sum(),
          report.dataset().tiers().stream().mapToLong(TierReport::usedBytes).sum(),
          report.dataset().tiers().stream().mapToLong(TierReport::capacityBytes).sum(),
          report.dataset().reads().bytes(),
          report.dataset().reads().fromTiers(),
          cluster.bytesFromPeers(),
          report.source().sourceOperations().bytes(),
          report.source().sourceOperations().total(),
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
            .map(self -> NodeReport.of(self.node(), self.address(), own, cluster))
            .orElse(NodeReport.of("this node", "", own, cluster)));
    Queue<MissingNode> missing = new ConcurrentLinkedQueue<>();
    if (!others.isEmpty()) {
      nodes.addAll(answers(others, peers, missing, limit));
    }
    Counts sum =
        nodes.stream()
            .map(NodeReport::counts)
            .filter(Objects::nonNull)
            .reduce(Counts.NONE, Counts::plus);
    List<MissingNode> all = missing(cluster, missing);
    return new NodesReport(
        own.mount().mountpoint(),
        cluster.name(),
        nodes,
        sum,
        cluster.expected() - cluster.absentCount() + all.size(),
        all,
        cluster.owner());
  }

  /**
   * Nodes that this node reports missing, and nodes that others report missing and this node does
   * not see.
   */
  private static List<MissingNode> missing(
      ClusterReport cluster, Queue<MissingNode> missedByOthers) {
    List<MissingNode> all = new ArrayList<>(cluster.absent());
    for (MissingNode one : missedByOthers) {
      if (cluster.members().stream().noneMatch(one::isOf) && all.stream().noneMatch(one::isSame)) {
        all.add(one);
      }
    }
    all.sort(Comparator.comparing(MissingNode::node));
    return all;
  }

  private static List<NodeReport> answers(
      List<Member> others, Peers peers, Queue<MissingNode> missing, Duration limit)
      throws InterruptedException {
    ExecutorService threads =
        Executors.newFixedThreadPool(
            Math.min(MOST_AT_ONCE, others.size()), new DefaultThreadFactory("all-nodes", true));
    try {
      List<Future<NodeReport>> answers =
          threads.invokeAll(
              others.stream()
                  .map(peer -> (Callable<NodeReport>) () -> ask(peer, peers, missing))
                  .toList(),
              limit.toMillis(),
              TimeUnit.MILLISECONDS);
      List<NodeReport> nodes = new ArrayList<>();
      for (int i = 0; i < answers.size(); i++) {
        nodes.add(answer(answers.get(i), others.get(i), limit));
      }
      return nodes;
    } catch (OutOfMemoryError e) {
      return others.stream().map(peer -> silent(peer, "no thread to send a request")).toList();
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

  private static NodeReport ask(Member peer, Peers peers, Queue<MissingNode> missing) {
    try {
      StatusReport report =
          new Gson().fromJson(peers.call(peer, "GET", "node", ""), StatusReport.class);
      ClusterReport cluster = report == null ? null : report.cluster();
      if (report == null
          || cluster == null
          || cluster.served() == null
          || report.dataset().tiers() == null
          || report.dataset().reads() == null
          || report.source().sourceOperations() == null) {
        return silent(peer, "its answer is not the status of a node");
      }
      missing.addAll(cluster.absent());
      return NodeReport.of(peer.name(), peer.host(), report, cluster);
    } catch (PeerException e) {
      return silent(peer, PeerReason.of(e));
    } catch (JsonSyntaxException e) {
      return silent(peer, "its answer is not the status of a node");
    }
  }

  private static NodeReport silent(Member peer, String why) {
    return new NodeReport(peer.name(), peer.host(), why, null, false, null);
  }

  public boolean isWhole() {
    return nodes.stream().allMatch(node -> node.error() == null);
  }
}
