package io.pmfs.cluster;

import java.util.List;

/**
 * The cluster as one of its nodes sees it.
 *
 * @param name as it was given
 * @param members this node among them
 * @param replicas how many nodes own a file
 * @param bytesFromPeers contents that came from peers, for whatever purpose
 * @param answers what peers answered, names too
 * @param misses questions to peers that went to the next one or to the source
 * @param serves what this node answers its peers
 */
public record ClusterStatus(
    String name,
    List<MemberStatus> members,
    int replicas,
    String remoteCopies,
    long bytesFromPeers,
    long answers,
    long misses,
    PeerServerStatistics serves) {
  /**
   * A member.
   *
   * @param isSelf whether it is this node
   * @param share of the dataset's files of which it is the first owner, 0 to 1
   * @param isSuspected whether it is not asked for a while, because it failed
   * @param asked what this node asked it
   */
  public record MemberStatus(
      Member member, boolean isSelf, double share, boolean isSuspected, PeerStatistics asked) {}
}
