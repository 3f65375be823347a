package io.pmfs.cli.doctor;

import io.pmfs.cluster.members.ClusterPorts;
import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.settings.ClusterOptions;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.util.ArrayList;
import java.util.List;

/** Checks that this node can listen on its cluster address and reach the other nodes. */
final class ClusterExamination {
  private static final int TIMEOUT_MS = 1000;

  /** A limit, because each node may take {@link #TIMEOUT_MS}. */
  private static final int MOST_NODES = 32;

  private final ClusterOptions options;
  private final List<Finding> findings = new ArrayList<>();

  ClusterExamination(ClusterOptions options) {
    this.options = options;
  }

  List<Finding> run() {
    InetAddress here;
    try {
      here = options.ownAddress();
    } catch (MountFailure e) {
      add(Finding.Grade.FAIL, "cluster", e.line());
      return findings;
    }
    listen(here);
    options.nodes().stream().limit(MOST_NODES).forEach(this::reach);
    if (options.nodes().size() > MOST_NODES) {
      add(
          Finding.Grade.OK,
          "cluster nodes",
          "%d more were not checked".formatted(options.nodes().size() - MOST_NODES));
    }
    return findings;
  }

  /** Checks that the other members of a mount's cluster can be reached. */
  static List<Finding> ofMembers(ClusterReport cluster) {
    List<Finding> findings = new ArrayList<>();
    for (ClusterReport.MemberReport member : cluster.members()) {
      String place = member.node() + " at " + member.address() + ":" + member.port();
      if (member.self()) {
        findings.add(new Finding(Finding.Grade.OK, "cluster address", place + ", this node"));
      } else if (findings.size() <= MOST_NODES) {
        findings.add(reach(member, place));
      }
    }
    String absence = cluster.absence();
    if (absence != null) {
      findings.add(
          new Finding(
              Finding.Grade.PART,
              "cluster",
              absence + "; check that they run and can be reached, or mount there"));
    }
    return findings;
  }

  private static Finding reach(ClusterReport.MemberReport member, String place) {
    try (Socket socket = new Socket()) {
      socket.connect(new InetSocketAddress(member.address(), member.port()), TIMEOUT_MS);
      return new Finding(Finding.Grade.OK, "cluster node", place + ": can be reached");
    } catch (IOException e) {
      return new Finding(
          Finding.Grade.PART,
          "cluster node",
          place + ": " + Reason.of(e) + "; its files are read from the source; check that node");
    }
  }

  /** Binds any free port, because the cluster's ports depend on the dataset. */
  private void listen(InetAddress here) {
    try (ServerSocket server = new ServerSocket()) {
      server.bind(new InetSocketAddress(here, 0));
      add(
          Finding.Grade.OK,
          "cluster address",
          "%s; open these TCP ports between the nodes: %d to %d, and those of ip_local_port_range"
              .formatted(here.getHostAddress(), ClusterPorts.FIRST, ClusterPorts.LAST));
    } catch (IOException e) {
      add(
          Finding.Grade.FAIL,
          "cluster address",
          "%s: cannot listen there: %s; see --cluster-address"
              .formatted(here.getHostAddress(), Reason.of(e)));
    }
  }

  /** A refused connection also counts as reached, because no firewall drops the packets. */
  private void reach(String node) {
    try (Socket socket = new Socket()) {
      InetAddress address = InetAddress.getByName(node);
      if (NetworkInterface.getByInetAddress(address) != null) {
        return; // this node
      }
      socket.connect(new InetSocketAddress(address, ClusterPorts.FIRST), TIMEOUT_MS);
      add(Finding.Grade.OK, "cluster node", node + ": can be reached");
    } catch (ConnectException e) {
      boolean refused = Reason.of(e).contains("refused");
      add(
          refused ? Finding.Grade.OK : Finding.Grade.WARN,
          "cluster node",
          refused ? node + ": can be reached" : node + ": " + Reason.of(e) + "; is it running?");
    } catch (SocketTimeoutException e) {
      add(
          Finding.Grade.WARN,
          "cluster node",
          "%s: no answer on TCP port %d: it is not running, or a firewall drops the packets"
              .formatted(node, ClusterPorts.FIRST));
    } catch (SocketException e) {
      add(Finding.Grade.WARN, "cluster node", node + ": " + Reason.of(e) + "; check the network");
    } catch (IOException e) {
      add(Finding.Grade.WARN, "cluster node", node + ": unknown host; check --nodes");
    }
  }

  private void add(Finding.Grade grade, String subject, String text) {
    findings.add(new Finding(grade, subject, text));
  }
}
