package io.pmfs.settings;

import io.pmfs.cluster.Cluster;
import io.pmfs.cluster.OutputCluster;
import io.pmfs.cluster.client.PeerTimeouts;
import io.pmfs.cluster.members.Attendance;
import io.pmfs.cluster.members.ClusterSecret;
import io.pmfs.cluster.members.ClusterSettings;
import io.pmfs.cluster.members.GroupTimings;
import io.pmfs.cluster.members.LocalAddress;
import io.pmfs.cluster.members.NodeList;
import io.pmfs.cluster.peers.PeerTls;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.places.NotOwnException;
import io.pmfs.places.OwnPath;
import io.pmfs.stage.copies.RemoteCopies;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The cluster in which a mount shares its dataset.
 *
 * @param name the cluster's name
 * @param nodes the hosts of other nodes; empty if there is a directory
 * @param expected the hosts on which nodes are expected; empty if unknown
 * @param directory in which nodes find each other; null if there is a list
 * @param address the address that peers use; null to choose it
 * @param secret null in a daemon's report, and until the first node of a cluster with a directory
 *     creates it
 * @param replicas how many nodes hold a file, at least 1
 * @param tls certificates, key and authorities; empty for plain HTTP
 */
public record ClusterOptions(
    String name,
    List<String> nodes,
    List<String> expected,
    @Nullable Path directory,
    @Nullable String address,
    @Nullable ClusterSecret secret,
    int replicas,
    RemoteCopies remoteCopies,
    PeerTimeouts timeouts,
    List<Path> tls) {
  /** The message for a cluster without a secret. */
  static final String NO_SECRET =
      "--cluster: needs a secret: give all nodes the same --cluster-secret-file FILE, of mode 0600"
          + " (head -c 32 /dev/urandom | base64 > FILE)";

  public ClusterOptions {
    nodes = List.copyOf(nodes);
    expected = List.copyOf(expected);
    tls = List.copyOf(tls);
  }

  /** Null without a cluster; then any cluster option on the command line is an error. */
  static @Nullable ClusterOptions of(OptionValues values) throws MountFailure {
    if (!values.has(MountOption.CLUSTER)) {
      for (MountOption<?> option : MountOption.options()) {
        if (option.group() == MountOption.Group.CLUSTER && values.isOnCommandLine(option)) {
          throw MountFailure.usage(option.commandLineName() + ": needs --cluster NAME");
        }
      }
      return null;
    }
    String name = values.get(MountOption.CLUSTER);
    refuseBoth(values, MountOption.CLUSTER_DIR, MountOption.NODES);
    refuseBoth(values, MountOption.CLUSTER_DIR, MountOption.NODES_FILE);
    refuseBoth(values, MountOption.NODES_FILE, MountOption.NODES);
    Path directory = values.findOwnPlace(MountOption.CLUSTER_DIR);
    List<Path> tls = values.find(MountOption.CLUSTER_TLS);
    List<String> nodes = directory == null ? nodes(values) : List.of();
    return new ClusterOptions(
        name,
        nodes,
        directory == null ? nodes : nodesOfJob(values),
        directory,
        values.find(MountOption.CLUSTER_ADDRESS),
        secret(values, directory),
        values.get(MountOption.REPLICAS),
        values.get(MountOption.REMOTE_COPIES),
        values.get(MountOption.PEER_TIMEOUTS),
        tls == null ? List.of() : tls);
  }

  /** Rejects two mutually exclusive options on the command line. */
  private static void refuseBoth(OptionValues values, MountOption<?> one, MountOption<?> other)
      throws MountFailure {
    if (values.isOnCommandLine(one) && values.isOnCommandLine(other)) {
      throw MountFailure.usage(
          one.commandLineName() + ": not together with " + other.commandLineName());
    }
  }

  private static List<String> nodes(OptionValues values) throws MountFailure {
    if (values.has(MountOption.NODES)) {
      return values.get(MountOption.NODES);
    }
    if (values.has(MountOption.NODES_FILE)) {
      return values.get(MountOption.NODES_FILE);
    }
    String job = values.surroundings().variable(ClusterParser.SLURM_NODES);
    if (job == null) {
      throw MountFailure.usage(
          "--cluster: which nodes? give --nodes a,b,c, --nodes-file FILE or --cluster-dir DIR");
    }
    return MountFailure.parsing(ClusterParser.SLURM_NODES, job, NodeList::ofSlurm);
  }

  /** The nodes of the scheduler's job, if known. */
  private static List<String> nodesOfJob(OptionValues values) {
    String job = values.surroundings().variable(ClusterParser.SLURM_NODES);
    try {
      return job == null ? List.of() : NodeList.ofSlurm(job);
    } catch (IllegalArgumentException e) {
      return List.of();
    }
  }

  /** Null if the mount must create the secret in the cluster's directory. */
  private static @Nullable ClusterSecret secret(OptionValues values, @Nullable Path directory)
      throws MountFailure {
    if (values.isResumed()) {
      return values.keptSecret();
    }
    if (values.has(MountOption.CLUSTER_SECRET_FILE)) {
      return values.get(MountOption.CLUSTER_SECRET_FILE);
    }
    ClusterSecret secret;
    try {
      secret = ClusterParser.secret(values.surroundings());
    } catch (IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.USAGE, String.valueOf(e.getMessage()), e);
    }
    if (secret != null) {
      return secret;
    }
    if (directory == null) {
      throw MountFailure.usage(NO_SECRET);
    }
    Path own = own(OwnPath.ofProcess()::existing, directory);
    return values.naming(MountOption.CLUSTER_DIR, () -> ClusterSecret.ofDirectoryIfThere(own));
  }

  /** A check of {@link OwnPath}. */
  private interface Check {
    Path of(Path path) throws IOException;
  }

  /** A directory in which no other user can replace the secret. */
  private static Path own(Check check, Path directory) throws MountFailure {
    try {
      return check.of(directory);
    } catch (IOException e) {
      throw MountFailure.usage(
          directory, "directory of the cluster", Reason.of(e), "choose another --cluster-dir");
    }
  }

  /** The secret of all nodes; in a shared directory the first node creates it. */
  ClusterSecret commonSecret() throws MountFailure {
    try {
      if (secret != null) {
        return secret;
      }
      if (directory != null) {
        return ClusterSecret.ofDirectory(own(OwnPath.ofProcess()::directory, directory));
      }
    } catch (IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.USAGE, "--cluster-dir: " + e.getMessage(), e);
    }
    throw MountFailure.usage(NO_SECRET);
  }

  /**
   * Opens this node's part of the cluster for a dataset. *
   *
   * @param isResumed whether a former daemon served the same mount
   */
  public Cluster open(String dataset, Path state, String hostName, boolean isResumed)
      throws MountFailure {
    return opening(
        dataset,
        (group, certificates) ->
            new Cluster(
                new Cluster.Settings(
                    group, hostName, replicas, remoteCopies, timeouts, certificates),
                state,
                attendance(state, hostName, group.address(), isResumed)));
  }

  /**
   * Opens this node's part of a writable mount on several nodes; the first in the list is the
   * owner. *
   *
   * @param isResumed whether a former daemon served the same mount
   */
  public OutputCluster openOutputs(String mount, Path state, String hostName, boolean isResumed)
      throws MountFailure {
    return opening(
        mount,
        (group, certificates) ->
            new OutputCluster(
                new OutputCluster.Settings(group, hostName, nodes.get(0), timeouts, certificates),
                state,
                attendance(state, hostName, group.address(), isResumed)));
  }

  private Attendance attendance(Path state, String hostName, InetAddress here, boolean isResumed) {
    return new Attendance(
        state, expected, hostName, here, isResumed, InstantSource.system(), Attendance.LOOK);
  }

  private interface Opening<T> {
    T open(ClusterSettings group, @Nullable PeerTls certificates) throws IOException;
  }

  private <T> T opening(String shared, Opening<T> opening) throws MountFailure {
    InetAddress here = ownAddress();
    try {
      OwnPath own = OwnPath.ofProcess();
      PeerTls certificates =
          tls.isEmpty()
              ? null
              : new PeerTls(own.file(tls.get(0)), own.file(tls.get(1)), own.file(tls.get(2)));
      return opening.open(
          new ClusterSettings(
              name + "/" + shared, here, nodes, directory, commonSecret(), GroupTimings.DEFAULTS),
          certificates);
    } catch (IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.USAGE, "--cluster " + name + ": " + e.getMessage(), e);
    } catch (NotOwnException e) {
      throw new MountFailure(
          ExitStatus.USAGE,
          "--cluster-tls: %s: %s; choose other files".formatted(e.getFile(), Reason.of(e)),
          e);
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, "--cluster " + name + ": " + Reason.of(e), e);
    }
  }

  /** The address of this machine that peers use. */
  public InetAddress ownAddress() throws MountFailure {
    try {
      return LocalAddress.choose(address, nodes);
    } catch (IllegalArgumentException e) {
      throw new MountFailure(
          ExitStatus.USAGE,
          address == null
              ? "--nodes: " + e.getMessage() + " with --cluster-address"
              : "--cluster-address: " + e.getMessage() + "; run ip address to list them",
          e);
    }
  }
}
