package io.pmfs.cli;

import io.pmfs.cluster.Cluster;
import io.pmfs.cluster.ClusterSecret;
import io.pmfs.cluster.ClusterSettings;
import io.pmfs.cluster.LocalAddress;
import io.pmfs.cluster.PeerTimeouts;
import io.pmfs.cluster.PeerTls;
import io.pmfs.stage.RemoteCopies;
import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * With whom a mount shares its dataset, and how.
 *
 * @param name the cluster's
 * @param nodes hosts to look for others on; empty if there is a directory
 * @param directory where they find each other without a list; null if there is one
 * @param address that peers are to use; null to choose it
 * @param secret null only among processes of one machine
 * @param replicas how many nodes hold a file, at least 1
 * @param tls certificates, key and authorities; empty for plain HTTP
 */
record ClusterOptions(
    String name,
    List<String> nodes,
    @Nullable Path directory,
    @Nullable String address,
    @Nullable ClusterSecret secret,
    int replicas,
    RemoteCopies remoteCopies,
    PeerTimeouts timeouts,
    List<Path> tls) {
  ClusterOptions {
    nodes = List.copyOf(nodes);
    tls = List.copyOf(tls);
  }

  /** This node's part in it, for a dataset whose state is kept in a directory. */
  Cluster open(String dataset, Path state, String hostName) throws MountFailure {
    InetAddress here = ownAddress();
    try {
      ClusterSettings group =
          new ClusterSettings(name + "/" + dataset, here, nodes, directory, secret);
      PeerTls certificates = tls.isEmpty() ? null : new PeerTls(tls.get(0), tls.get(1), tls.get(2));
      return new Cluster(
          new Cluster.Settings(group, hostName, replicas, remoteCopies, timeouts, certificates),
          state);
    } catch (IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.USAGE, "--cluster " + name + ": " + e.getMessage(), e);
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, "--cluster " + name + ": " + Reason.of(e), e);
    }
  }

  /** This machine's, as the others are to use it. */
  InetAddress ownAddress() throws MountFailure {
    if (secret == null) {
      for (String node : nodes) {
        if (!isLoopback(node)) {
          throw MountFailure.usage(
              "--nodes: "
                  + node
                  + " is another machine: give all nodes the same --cluster-secret-file");
        }
      }
    }
    try {
      return LocalAddress.choose(address, nodes, secret != null);
    } catch (IllegalArgumentException e) {
      throw new MountFailure(
          ExitStatus.USAGE,
          address == null
              ? "--nodes: " + e.getMessage() + " with --cluster-address"
              : "--cluster-address: " + e.getMessage() + "; ip address lists them",
          e);
    }
  }

  /** Whether a name is this machine's among processes of this machine. */
  private static boolean isLoopback(String node) {
    try {
      return InetAddress.getByName(node).isLoopbackAddress();
    } catch (UnknownHostException e) {
      return false;
    }
  }
}
