package io.pmfs.cluster.members;

import java.net.InetAddress;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * How a node finds the others.
 *
 * @param name the name of the cluster and of what it serves: nodes with different names do not find
 *     each other
 * @param address this node's address, where it listens on a free port
 * @param nodes the hosts on which to look for others, as {@link NodeList} returns them; empty if
 *     there is a directory
 * @param directory on a file system that all nodes share, where they find each other without a list
 * @param secret the secret that only its nodes know
 * @param timings how long its members wait for each other
 */
public record ClusterSettings(
    String name,
    InetAddress address,
    List<String> nodes,
    @Nullable Path directory,
    ClusterSecret secret,
    GroupTimings timings) {
  public ClusterSettings {
    nodes = List.copyOf(nodes);
    if (name.isEmpty()) {
      throw new IllegalArgumentException("cluster name: must not be empty");
    }
    if (nodes.isEmpty() == (directory == null)) {
      throw new IllegalArgumentException(
          "cluster " + name + ": needs either a list of nodes or a directory that they share");
    }
  }
}
