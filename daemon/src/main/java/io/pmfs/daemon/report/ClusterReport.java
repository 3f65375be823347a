package io.pmfs.daemon.report;

import io.pmfs.cluster.ClusterStatus;
import io.pmfs.cluster.members.Member;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A cluster as one of its nodes sees it, in {@code pmfs status --json}. */
public record ClusterReport(
    @Figure("the name given with `--cluster`") String name,
    List<MemberReport> members,
    @Figure(
            value = "the fraction of the files that this node owns, 0 to 1",
            metric = "pmfs_cluster_share_ratio")
        double share,
    @Figure("how many nodes hold each file") int replicas,
    @Figure("`auto`, `keep` or `never`") String remoteCopies,
    @Figure(value = "bytes of contents that came from peers", metric = "pmfs_peer_read_bytes_total")
        long bytesFromPeers,
    @Figure(value = "requests that peers answered", metric = "pmfs_peer_hits_total")
        long answersOfPeers,
    @Figure(
            value = "requests to peers that were then sent to the next peer or to the source",
            metric = "pmfs_peer_misses_total")
        long missesOfPeers,
    @Figure("answers divided by requests, 0 to 1; 0 before the first") double peerHitRatio,
    Served served,
    @Figure(
            value =
                "nodes that are present or missing: those of the list or of the job, and those that"
                    + " were present since the mount began and did not unmount",
            metric = "pmfs_cluster_expected_members")
        int expected,
    @Nullable List<MissingNode> missing,
    @Figure("the host of the node that owns all names of a writable mount; else null")
        @Nullable String owner) {
  /** The missing nodes; empty in the report of an older daemon. */
  public List<MissingNode> absent() {
    return missing == null ? List.of() : missing;
  }

  @Figure(
      value = "expected nodes that this node does not see; `pmfs status` then ends with 4",
      metric = "pmfs_cluster_missing_members")
  public int absentCount() {
    return absent().size();
  }

  /** A message about missing nodes; null if none are missing. */
  public @Nullable String absence() {
    return MissingNode.text(expected, absent());
  }

  /** One node, and the requests of the reporting node to it. */
  public record MemberReport(
      @Figure("its host name") String node,
      @Figure("its id, which stays the same as long as its copies exist") String id,
      @Figure("where it answers its peers") String address,
      @Figure("the port of that address") int port,
      @Figure("whether it is the reporting node") boolean self,
      @Figure("the fraction of the files that it owns, 0 to 1") double share,
      @Figure("whether the reporting node avoids it for now because it failed") boolean suspected,
      @Figure("how many requests the reporting node has sent to it") long requests,
      @Figure("bytes of contents that came from it") long bytes,
      @Figure("requests that failed") long failures,
      @Figure("how long its answers took: the median") double medianMillis,
      @Figure("the 99th percentile") double slowestPercentMillis) {}

  /** This node's answers to the other nodes. */
  public record Served(
      @Figure(
              value = "requests of peers that this node answered or refused",
              metric = "pmfs_peer_served_requests_total")
          long requests,
      @Figure(value = "bytes of contents sent to peers", metric = "pmfs_peer_served_bytes_total")
          long bytes,
      @Figure("numbers of refused requests and connections, by reason") Map<String, Long> refused,
      @Figure(
              value = "answers to peers that were interrupted",
              metric = "pmfs_peer_served_failed_total")
          long failed,
      @Figure("requests being answered") int active,
      @Figure("the longest time that a request waited for the first byte") long longestWaitMillis) {
    @Figure(
        value = "requests and connections of peers that were refused",
        metric = "pmfs_peer_served_refused_total")
    public long allRefused() {
      return refused.values().stream().mapToLong(Long::longValue).sum();
    }
  }

  @Figure(value = "nodes of the cluster, this one included", metric = "pmfs_cluster_members")
  public int size() {
    return members.size();
  }

  @Figure(
      value = "nodes that get no requests for now because they failed",
      metric = "pmfs_cluster_suspected_members")
  public long suspected() {
    return members.stream().filter(MemberReport::suspected).count();
  }

  public static ClusterReport of(ClusterStatus status) {
    List<MemberReport> members = status.members().stream().map(ClusterReport::of).toList();
    long asked = status.answers() + status.misses();
    return new ClusterReport(
        // The dataset follows the slash.
        status.name().replaceFirst("/.*", ""),
        members,
        members.stream().filter(MemberReport::self).mapToDouble(MemberReport::share).sum(),
        status.replicas(),
        status.remoteCopies(),
        status.bytesFromPeers(),
        status.answers(),
        status.misses(),
        asked == 0 ? 0 : (double) status.answers() / asked,
        new Served(
            status.serves().requests(),
            status.serves().bytes(),
            status.serves().refused(),
            status.serves().failed(),
            status.serves().active(),
            status.serves().longestWaitMillis()),
        status.roll().expected(),
        status.roll().missing().stream().map(MissingNode::of).toList(),
        status.owner());
  }

  private static MemberReport of(ClusterStatus.MemberStatus status) {
    Member member = status.member();
    return new MemberReport(
        member.name(),
        member.id().toString(),
        member.host(),
        member.port(),
        status.isSelf(),
        status.share(),
        status.isSuspected(),
        status.asked().requests(),
        status.asked().bytes(),
        status.asked().failures(),
        status.asked().medianMillis(),
        status.asked().slowestPercentMillis());
  }
}
