package io.pmfs.daemon.outputs;

import io.pmfs.cluster.OutputCluster;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.server.OutputRequests;
import io.pmfs.contents.OutputDirectories;
import io.pmfs.daemon.process.Readiness;
import io.pmfs.fuse.system.LinuxOutputCalls;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.machine.TimeSpan;
import io.pmfs.places.Surroundings;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.settings.ClusterOptions;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.Place;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.mount.WritableMount;
import io.pmfs.writable.remote.BusyException;
import io.pmfs.writable.remote.NodeFiles;
import io.pmfs.writable.remote.NodeServer;
import io.pmfs.writable.remote.OwnerLink;
import io.pmfs.writable.remote.OwnerServer;
import io.pmfs.writable.remote.RemoteFileSystem;
import io.pmfs.writable.remote.RemoteNodes;
import java.io.IOException;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.function.Consumer;

/** This node's role in a writable mount on several nodes: the owner or a client of it. */
final class OutputNode implements AutoCloseable {
  private final OutputCluster cluster;

  private OutputNode(OutputCluster cluster) {
    this.cluster = cluster;
  }

  static OutputNode of(
      ClusterOptions options,
      String mount,
      OutputDirectories directories,
      Surroundings surroundings,
      boolean isResumed)
      throws MountFailure {
    return new OutputNode(
        options.openOutputs(mount, directories.state(), surroundings.hostName(), isResumed));
  }

  OutputCluster cluster() {
    return cluster;
  }

  boolean isOwner() {
    return cluster.isOwner();
  }

  /** As the owner, serves the other nodes from this node's mount. */
  void answer(WritableMount mount, Readiness readiness) throws MountFailure {
    mount.use(new RemoteNodes(this::askNode, RemoteNodes.PATIENCE_MILLIS));
    OwnerServer server = new OwnerServer(mount);
    open(server::answer, server::present, readiness);
  }

  /**
   * As another node, joins the owner.
   *
   * @param isResumed whether programs already use the mount, which then waits for the owner
   * @param places hold this node's data files
   * @param readiness how long to wait for the owner
   */
  WritableFileSystem join(
      UUID session, boolean isResumed, Path source, List<Place> places, Readiness readiness)
      throws MountFailure {
    OutputCalls calls = new LinuxOutputCalls();
    NodeFiles files = new NodeFiles(places, source, calls, InstantSource.system());
    open(new NodeServer(files)::answer, members -> {}, readiness);
    try {
      return RemoteFileSystem.join(
          new Link(cluster),
          new RemoteFileSystem.Self(
              cluster.id(), cluster.nodeName(), session, source, calls, files),
          isResumed,
          readiness.left(),
          RemoteFileSystem.PATIENCE_MILLIS);
    } catch (FsException e) {
      throw new MountFailure(
          ExitStatus.FAILED,
          e.errno() == Errno.EEXIST
              ? Reason.of(e)
              : "--cluster: %s; waited %s (--ready-timeout) and found %s; mount on %s first or at the same time, or wait longer"
                  .formatted(
                      Reason.of(e), TimeSpan.format(readiness.limit()), others(), cluster.owner()),
          e);
    }
  }

  /** The other nodes in the cluster, for a message. */
  private String others() {
    List<String> names = cluster.others().stream().map(Member::name).sorted().toList();
    return names.isEmpty() ? "no other node" : "only " + String.join(", ", names);
  }

  private void open(OutputRequests requests, Consumer<Set<UUID>> present, Readiness readiness)
      throws MountFailure {
    try {
      cluster.open(requests, present, readiness.leftForOptional());
    } catch (IOException | IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.FAILED, "--cluster: " + Reason.of(e), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new MountFailure(ExitStatus.FAILED, "--cluster: interrupted", e);
    }
  }

  @Override
  public void close() {
    cluster.close();
  }

  private byte[] askNode(UUID node, String name, byte[] body) throws IOException {
    try {
      return cluster.ask(node, name, body);
    } catch (PeerException e) {
      throw noAnswer(e);
    }
  }

  private static IOException noAnswer(PeerException e) {
    return e.kind() == PeerException.Kind.BUSY
        ? new BusyException(String.valueOf(e.getMessage()), e)
        : new IOException(e.getMessage(), e);
  }

  private record Link(OutputCluster cluster) implements OwnerLink {
    @Override
    public byte[] ask(String name, byte[] body) throws IOException {
      try {
        return cluster.askOwner(name, body);
      } catch (PeerException e) {
        throw noAnswer(e);
      }
    }

    @Override
    public String owner() {
      return cluster.owner();
    }
  }
}
