package io.pmfs.cluster;

import java.net.InetAddress;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * How a node finds the others.
 *
 * @param name the cluster's, and what it serves: nodes with other names are not met
 * @param address this node's, where it listens on a port that is free
 * @param nodes hosts to look for others on, as {@link NodeList} has them; empty if there is a
 *     directory
 * @param directory on a file system that all nodes share, where they find each other without a list
 * @param secret what only its nodes know
 * @param timings how patient its members are with each other
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

  /** Members that are as patient as is usual. */
  public ClusterSettings(
      String name,
      InetAddress address,
      List<String> nodes,
      @Nullable Path directory,
      ClusterSecret secret) {
    this(name, address, nodes, directory, secret, GroupTimings.DEFAULTS);
  }
}
