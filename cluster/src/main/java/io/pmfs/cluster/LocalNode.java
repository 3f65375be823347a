package io.pmfs.cluster;

import io.pmfs.cluster.members.Attendance;
import io.pmfs.cluster.members.ClusterSettings;
import io.pmfs.cluster.members.InfinispanMembership;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.Membership;
import io.pmfs.cluster.members.NodeId;
import io.pmfs.cluster.members.View;
import io.pmfs.cluster.peers.PeerTls;
import io.pmfs.cluster.peers.RequestSignature;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.cluster.server.OutputRequests;
import io.pmfs.cluster.server.PeerLimits;
import io.pmfs.cluster.server.PeerServer;
import io.pmfs.cluster.server.PeerServerStatistics;
import io.pmfs.cluster.server.PeerService;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** This node: what it answers to its peers, and which of them it sees. Thread-safe. */
final class LocalNode implements AutoCloseable {
  private static final int INSTANCE_BITS_OF_CHANCE = 20;

  private final ClusterSettings group;
  private final String name;
  private final @Nullable PeerTls tls;
  private final UUID id;
  private final byte[] key;
  private final Attendance attendance;
  private volatile @Nullable PeerServer server;
  private volatile @Nullable Membership membership;

  /**
   * A node that neither answers nor has joined its cluster yet.
   *
   * @param name this node's name, for people
   * @param tls for requests between peers; null for plain HTTP
   * @param state the directory that keeps the node's id
   * @param attendance who is missing; this closes it
   */
  LocalNode(
      ClusterSettings group,
      String name,
      @Nullable PeerTls tls,
      Path state,
      Attendance attendance) {
    this.group = group;
    this.name = name;
    this.tls = tls;
    this.id = NodeId.of(state, name);
    this.key = group.secret().requestKey().getEncoded();
    this.attendance = attendance;
  }

  /** This node's persistent id. */
  UUID id() {
    return id;
  }

  /** The key that signs requests between peers. */
  byte[] key() {
    return key;
  }

  /**
   * Starts to answer peers, and joins the cluster.
   *
   * @param patience how long to wait until this node has joined the group, not for other nodes;
   *     joining continues in the background
   * @param changed called once this node has joined or waited, and after each change of {@link
   *     #view}; by several threads at once
   * @throws IOException if this node cannot listen
   * @throws IllegalArgumentException with a one-line message, if the settings can never work
   */
  void open(
      PeerService dataset,
      NodeRequests control,
      OutputRequests outputs,
      Duration patience,
      Runnable changed)
      throws IOException, InterruptedException {
    String host = group.address().getHostAddress();
    long instance = newInstance();
    PeerServer listening =
        new PeerServer(
            host,
            new RequestSignature(key, instance, InstantSource.system()),
            tls,
            PeerLimits.DEFAULTS,
            dataset,
            control,
            outputs);
    server = listening;
    Member self = new Member(id, instance, name, host, listening.address().getPort());
    Membership joined = InfinispanMembership.join(group, self, patience);
    membership = joined;
    joined.onChange(view -> changed.run());
    changed.run();
    attendance.begin(joined);
  }

  /** A number that is larger at each start of a node. */
  private static long newInstance() {
    return (System.currentTimeMillis() << INSTANCE_BITS_OF_CHANCE)
        | (UUID.randomUUID().getLeastSignificantBits() & ((1L << INSTANCE_BITS_OF_CHANCE) - 1));
  }

  /** The nodes that this one sees, itself included; empty before it has begun to join. */
  View view() {
    Membership joined = membership;
    return joined == null ? new View(List.of()) : joined.view();
  }

  List<Member> others() {
    return view().members().stream().filter(member -> !member.id().equals(id)).toList();
  }

  /** What it has answered so far. */
  PeerServerStatistics statistics() {
    PeerServer answering = server;
    return answering == null ? PeerServerStatistics.NONE : answering.statistics();
  }

  /** Says goodbye, because the mount has ended: the others will not report this node as missing. */
  void sayGoodbye() {
    Membership joined = membership;
    if (joined != null) {
      joined.sayGoodbye();
    }
  }

  /** Leaves the cluster, then stops answering peers. Idempotent. */
  @Override
  public void close() {
    attendance.close();
    Membership joined = membership;
    if (joined != null) {
      joined.close();
    }
    PeerServer listening = server;
    if (listening != null) {
      listening.close();
    }
  }
}
