package io.pmfs.cluster.members;

/** The ports that cluster members listen on; a firewall between nodes must let them through. */
public final class ClusterPorts {
  /** The first TCP port that a cluster's name may map to. */
  public static final int FIRST = 20_000;

  /** The last one, below Linux's ports for outgoing connections (ip_local_port_range). */
  public static final int LAST = 32_767;

  private ClusterPorts() {}
}
