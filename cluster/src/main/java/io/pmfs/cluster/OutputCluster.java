package io.pmfs.cluster;

import io.pmfs.cluster.client.HttpPeerClient;
import io.pmfs.cluster.client.PeerTimeouts;
import io.pmfs.cluster.client.Peers;
import io.pmfs.cluster.members.Attendance;
import io.pmfs.cluster.members.ClusterSettings;
import io.pmfs.cluster.members.LocalAddress;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerTls;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.cluster.server.OutputRequests;
import io.pmfs.posix.DaemonThread;
import io.pmfs.stage.copies.RemoteCopies;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A node's part in a writable mount on several nodes: one of them, the owner, has all names and
 * serves the others. Thread-safe.
 */
public final class OutputCluster implements Peers, AutoCloseable {
  private static final long LOOK_MILLIS = 1000;

  /**
   * The settings of a node's part.
   *
   * @param group how its nodes find each other
   * @param nodeName this node's name, for people
   * @param owner the host of the owner
   * @param tls for requests between peers; null for plain HTTP
   */
  public record Settings(
      ClusterSettings group,
      String nodeName,
      String owner,
      PeerTimeouts timeouts,
      @Nullable PeerTls tls) {}

  private final Settings settings;
  private final LocalNode node;
  private final HttpPeerClient client;
  private final boolean isOwner;
  private final Attendance attendance;
  private volatile NodeRequests control = NodeRequests.NONE;
  private volatile @Nullable Member owner;

  /** As DNS said when no member had the owner's name. */
  private volatile List<InetAddress> ownersAddresses = List.of();

  private volatile boolean closed;

  /**
   * Prepares a node.
   *
   * @param state the directory that keeps the node's id
   * @param attendance reports missing nodes; closed with this
   */
  public OutputCluster(Settings settings, Path state, Attendance attendance) {
    this.settings = settings;
    this.attendance = attendance;
    this.node =
        new LocalNode(settings.group(), settings.nodeName(), settings.tls(), state, attendance);
    this.client =
        new HttpPeerClient(node.key(), settings.tls(), settings.timeouts(), peer -> false, null);
    this.isOwner = LocalAddress.isHere(settings.owner());
  }

  public boolean isOwner() {
    return isOwner;
  }

  /** This node's persistent id. */
  public UUID id() {
    return node.id();
  }

  /** This node's name and address, for messages on other nodes. */
  public String nodeName() {
    return settings.nodeName() + " (" + settings.group().address().getHostAddress() + ")";
  }

  public String owner() {
    return settings.owner();
  }

  /** Sets the handler of requests about the node itself. */
  public void use(NodeRequests answers) {
    control = answers;
  }

  /**
   * Starts to answer peers, and joins the cluster.
   *
   * @param outputs answers the others
   * @param present receives the ids of the present members, once a second
   * @param patience how long to wait until this node has joined the group; joining continues in the
   *     background
   * @throws IOException if this node cannot listen
   * @throws IllegalArgumentException with a one-line message, if the settings can never work
   */
  public void open(OutputRequests outputs, Consumer<Set<UUID>> present, Duration patience)
      throws IOException, InterruptedException {
    node.open(
        new NoDataset(),
        (method, path, body) -> control.answer(method, path, body),
        outputs,
        patience,
        this::change);
    DaemonThread.lasting("pmfs-outputs-members", () -> look(present)).start();
  }

  /** Applies the latest view, so that the order of concurrent calls does not matter. */
  private synchronized void change() {
    List<Member> members = members();
    client.keepOnly(ids(members));
    owner = LocalAddress.memberOn(settings.owner(), ownersAddresses, members);
  }

  private void look(Consumer<Set<UUID>> present) {
    try {
      while (!closed) {
        present.accept(ids(members()));
        lookForOwner();
        Thread.sleep(LOOK_MILLIS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** It may be a member whose name is not that of its host. */
  private void lookForOwner() {
    if (owner == null && !isOwner) {
      ownersAddresses = LocalAddress.addressesOf(settings.owner());
      change();
    }
  }

  private static Set<UUID> ids(List<Member> members) {
    return members.stream().map(Member::id).collect(Collectors.toSet());
  }

  private List<Member> members() {
    return node.view().members();
  }

  private boolean isSelf(Member member) {
    return member.id().equals(node.id());
  }

  private boolean isOwner(Member member) {
    return isOwner ? isSelf(member) : member.equals(owner);
  }

  public ClusterStatus status() {
    return new ClusterStatus(
        settings.group().name(),
        members().stream().map(this::status).toList(),
        1,
        RemoteCopies.NEVER.word(),
        0,
        0,
        0,
        node.statistics(),
        attendance.roll(),
        settings.owner());
  }

  @Override
  public List<Member> others() {
    return node.others();
  }

  @Override
  public String call(Member peer, String method, String path, String body) throws PeerException {
    return client.call(peer, method, path, body);
  }

  private ClusterStatus.MemberStatus status(Member member) {
    return new ClusterStatus.MemberStatus(
        member, isSelf(member), isOwner(member) ? 1 : 0, false, client.statistics(member));
  }

  /**
   * Sends a request to the owner once.
   *
   * @throws PeerException if there is no answer; unless it is BUSY, the owner may still have
   *     received the request
   */
  public byte[] askOwner(String name, byte[] body) throws PeerException {
    return ask(owner, name, body);
  }

  /** Sends a request to a node once. */
  public byte[] ask(UUID asked, String name, byte[] body) throws PeerException {
    return ask(node.view().find(asked), name, body);
  }

  private byte[] ask(@Nullable Member asked, String name, byte[] body) throws PeerException {
    if (asked == null) {
      throw new PeerException(
          PeerException.Kind.UNREACHABLE, "it has no mount yet, or cannot be reached");
    }
    return client.outputs(asked, name, body);
  }

  /** Says goodbye, because the mount has ended: the others will not report this node as missing. */
  public void sayGoodbye() {
    node.sayGoodbye();
  }

  /** Leaves the cluster, then stops answering peers. Idempotent. */
  @Override
  public void close() {
    closed = true;
    node.close();
    client.close();
  }
}
