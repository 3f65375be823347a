package io.pmfs.cluster;

import io.pmfs.cluster.client.PeerStatistics;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.Roll;
import io.pmfs.cluster.server.PeerServerStatistics;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The cluster as one of its nodes sees it.
 *
 * @param name the name of the cluster, as given
 * @param members all members, this node among them
 * @param replicas how many nodes own a file
 * @param bytesFromPeers bytes of content that came from peers, for any purpose
 * @param answers questions that peers answered, including those for names
 * @param misses questions that were passed on to another peer or to the source
 * @param serves statistics of this node's answers to its peers
 * @param roll the expected and the missing nodes
 * @param owner the host of the node that owns a writable mount; null for a dataset
 */
public record ClusterStatus(
    String name,
    List<MemberStatus> members,
    int replicas,
    String remoteCopies,
    long bytesFromPeers,
    long answers,
    long misses,
    PeerServerStatistics serves,
    Roll roll,
    @Nullable String owner) {
  /**
   * A member.
   *
   * @param isSelf whether it is this node
   * @param share the fraction of the dataset's files whose first owner it is, 0 to 1
   * @param isSuspected whether this node does not ask it for a while, because it failed
   * @param asked statistics of this node's requests to it
   */
  public record MemberStatus(
      Member member, boolean isSelf, double share, boolean isSuspected, PeerStatistics asked) {}
}
