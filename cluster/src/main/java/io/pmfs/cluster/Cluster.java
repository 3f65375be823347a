package io.pmfs.cluster;

import static java.util.stream.Collectors.toSet;

import io.pmfs.cluster.client.HttpPeerClient;
import io.pmfs.cluster.client.PeerTimeouts;
import io.pmfs.cluster.client.Peers;
import io.pmfs.cluster.members.Attendance;
import io.pmfs.cluster.members.ClusterSettings;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.View;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerTls;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.cluster.server.OutputRequests;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Namespace;
import io.pmfs.source.BackingStore;
import io.pmfs.stage.Stager;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.RemoteCopies;
import io.pmfs.stage.copies.Share;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * A node's part in a cluster. The caller first makes the node's file system with the {@link #store}
 * and the {@link #share}, then calls {@link #open}. Until then, and until it meets other nodes, the
 * node is alone.
 */
public final class Cluster implements Peers, AutoCloseable {
  /**
   * The settings of a node's part in a cluster.
   *
   * @param group how its nodes find each other
   * @param nodeName this node's name, for people
   * @param replicas how many nodes own a file, at least 1
   * @param tls for requests between peers; null for plain HTTP
   */
  public record Settings(
      ClusterSettings group,
      String nodeName,
      int replicas,
      RemoteCopies remoteCopies,
      PeerTimeouts timeouts,
      @Nullable PeerTls tls) {}

  private final Settings settings;
  private final LocalNode node;
  private final Owners owners;
  private final Suspects suspects = new Suspects(System::nanoTime);
  private final Suspects withoutSource = new Suspects(System::nanoTime);
  private final HttpPeerClient client;
  private final Attendance attendance;
  private volatile @Nullable PeerStore store;
  private volatile @Nullable LonelyCopies lonely;

  /**
   * Prepares a node.
   *
   * @param state the directory that keeps the node's id
   * @param attendance who is missing; this closes it
   * @throws IOException if the node cannot be prepared
   */
  public Cluster(Settings settings, Path state, Attendance attendance) throws IOException {
    this.settings = settings;
    this.attendance = attendance;
    this.node =
        new LocalNode(settings.group(), settings.nodeName(), settings.tls(), state, attendance);
    this.owners = new Owners(node.id(), settings.replicas());
    this.client =
        new HttpPeerClient(
            node.key(),
            settings.tls(),
            settings.timeouts(),
            withoutSource::isSuspected,
            settings.remoteCopies() == RemoteCopies.NEVER ? null : node.id());
  }

  /**
   * Wraps the source, so that this node asks the owners first. The caller closes the result.
   *
   * @param isOpenToOthers whether users other than the daemon's can enter the mount: then peers are
   *     not trusted with access rights
   */
  public BackingStore store(BackingStore source, boolean isOpenToOthers) {
    PeerStore made =
        new PeerStore(
            source,
            owners,
            client,
            new PeerQuestions(owners, suspects, withoutSource, SourceProbes.PATIENCE),
            isOpenToOthers,
            settings.timeouts().ofAReader());
    store = made;
    return made;
  }

  /** The files that this node holds on behalf of the cluster. */
  public Share share(Namespace namespace) {
    return new ClusterShare(owners, namespace, settings.remoteCopies());
  }

  /**
   * Starts to answer peers, and joins the cluster.
   *
   * @param control answers requests about the node itself
   * @param patience how long to wait until this node has joined the group, not for other nodes;
   *     joining continues in the background
   * @throws IOException if this node cannot listen
   * @throws IllegalArgumentException with a one-line message, if the settings can never work
   */
  public void open(
      PmfsFileSystem fileSystem,
      Namespace namespace,
      Copies copies,
      Stager stager,
      NodeRequests control,
      Duration patience)
      throws IOException, InterruptedException {
    if (settings.remoteCopies() == RemoteCopies.NEVER) {
      LonelyCopies made =
          new LonelyCopies(
              stager,
              namespace,
              owners,
              client,
              member -> suspects.isSuspected(member) || withoutSource.isSuspected(member));
      made.start();
      lonely = made;
    }
    node.open(
        new DatasetService(
            fileSystem,
            namespace,
            copies,
            stager,
            owners,
            this::asksElsewhere,
            this::readsElsewhere),
        control,
        OutputRequests.NONE,
        patience,
        () -> change(stager));
  }

  private boolean asksElsewhere(FileName path) {
    PeerStore asking = store;
    return asking != null && asking.asksElsewhere(path);
  }

  private boolean readsElsewhere(FileName path) {
    PeerStore asking = store;
    return asking != null && asking.readsElsewhere(path);
  }

  /** Applies the latest view, so that the order of concurrent calls does not matter. */
  private synchronized void change(Stager stager) {
    View view = node.view();
    Set<UUID> ids = view.members().stream().map(Member::id).collect(toSet());
    owners.change(view);
    suspects.keepOnly(ids);
    withoutSource.keepOnly(ids);
    client.keepOnly(ids);
    PeerStore asking = store;
    if (asking != null) {
      asking.keepOnly(ids);
    }
    stager.shareChanged();
    LonelyCopies left = lonely;
    if (left != null) {
      left.changed();
    }
  }

  @Override
  public List<Member> others() {
    return node.others();
  }

  @Override
  public String call(Member peer, String method, String path, String body) throws PeerException {
    return client.call(peer, method, path, body);
  }

  public ClusterStatus status() {
    PeerStore asking = store;
    PeerStore.Statistics peers =
        asking == null ? PeerStore.Statistics.NONE : asking.statisticsOfPeers();
    return new ClusterStatus(
        settings.group().name(),
        node.view().members().stream().map(this::status).toList(),
        settings.replicas(),
        settings.remoteCopies().word(),
        peers.bytes(),
        peers.answers(),
        peers.misses(),
        node.statistics(),
        attendance.roll(),
        null);
  }

  private ClusterStatus.MemberStatus status(Member member) {
    return new ClusterStatus.MemberStatus(
        member,
        owners.isSelf(member),
        owners.share(member),
        suspects.isSuspected(member) || withoutSource.isSuspected(member),
        client.statistics(member));
  }

  /** Says goodbye, because the mount has ended: the others will not report this node as missing. */
  public void sayGoodbye() {
    node.sayGoodbye();
  }

  /** Leaves the cluster, then stops answering peers. Idempotent. */
  @Override
  public void close() {
    LonelyCopies left = lonely;
    if (left != null) {
      left.close();
    }
    node.close();
    client.close();
  }
}
