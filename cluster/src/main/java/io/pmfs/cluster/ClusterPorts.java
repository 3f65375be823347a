package io.pmfs.cluster;

/** Where members of clusters listen; a firewall between them has to let them through. */
public final class ClusterPorts {
  /** The first TCP port that a cluster's name may lead to. */
  public static final int FIRST = 20_000;

  /** Below the ports that Linux gives to outgoing connections (ip_local_port_range). */
  public static final int LAST = 32_767;

  private ClusterPorts() {}
}
