package io.pmfs.daemon.report;

import io.pmfs.cluster.ClusterStatus;
import io.pmfs.cluster.Member;
import java.util.List;
import java.util.Map;

/**
 * A cluster as one of its nodes sees it, in {@code pmfs status --json}.
 *
 * @param share of the files that this node holds for all, 0 to 1
 * @param bytesFromPeers contents that came from other nodes, for readers and for copies
 * @param peerHitRatio answers of peers by questions to them, 0 to 1; 0 before the first
 */
public record ClusterReport(
    String name,
    List<MemberReport> members,
    double share,
    int replicas,
    String remoteCopies,
    long bytesFromPeers,
    long answersOfPeers,
    long missesOfPeers,
    double peerHitRatio,
    Served served) {
  /**
   * One node, and what this one asked it.
   *
   * @param medianMillis of the time that its answers took
   * @param slowestPercentMillis the 99th percentile of it
   */
  public record MemberReport(
      String node,
      String id,
      String address,
      int port,
      boolean self,
      double share,
      boolean suspected,
      long requests,
      long bytes,
      long failures,
      double medianMillis,
      double slowestPercentMillis) {}

  /** What this node answered the others. */
  public record Served(
      long requests,
      long bytes,
      Map<String, Long> refused,
      long failed,
      int active,
      long longestWaitMillis) {}

  public static ClusterReport of(ClusterStatus status) {
    List<MemberReport> members = status.members().stream().map(ClusterReport::of).toList();
    long asked = status.answers() + status.misses();
    return new ClusterReport(
        // Behind the slash is the dataset.
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
            status.serves().longestWaitMillis()));
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
