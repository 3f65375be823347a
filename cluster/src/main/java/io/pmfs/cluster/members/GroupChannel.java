package io.pmfs.cluster.members;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.hash.Hashing;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.SocketException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import javax.net.ServerSocketFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import org.jgroups.Address;
import org.jgroups.JChannel;
import org.jgroups.blocks.cs.TcpServer;
import org.jgroups.conf.ClassConfigurator;
import org.jgroups.protocols.FD_ALL3;
import org.jgroups.protocols.FILE_PING;
import org.jgroups.protocols.FRAG4;
import org.jgroups.protocols.MERGE3;
import org.jgroups.protocols.MFC;
import org.jgroups.protocols.TCP;
import org.jgroups.protocols.TCPPING;
import org.jgroups.protocols.UFC;
import org.jgroups.protocols.UNICAST3;
import org.jgroups.protocols.VERIFY_SUSPECT2;
import org.jgroups.protocols.pbcast.GMS;
import org.jgroups.protocols.pbcast.NAKACK2;
import org.jgroups.protocols.pbcast.STABLE;
import org.jgroups.stack.Protocol;
import org.jgroups.util.DefaultSocketFactory;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The JGroups protocols by which nodes find each other and detect failures. */
final class GroupChannel {
  private static final Logger log = LoggerFactory.getLogger(GroupChannel.class);

  /** Limit of members, of all clusters, that listen at one address. */
  static final int PORTS = 8;

  /** Up to this many nodes look for each other often; more would be too busy with it. */
  private static final int FEW_NODES = 128;

  private static final int DISCOVERY_RUNS = 3;

  /**
   * Attempts to join before a node forms a group of its own, which merges with the others later.
   * When many nodes start together, most of them only wait for the first one.
   */
  private static final int JOIN_ATTEMPTS = 10;

  /** A leading member may take longer to admit a node than to answer it. */
  private static final int ADMISSION_FACTOR = 3;

  private static final int CONNECT_TIMEOUT_MS = 300;

  /** Longer than the heartbeat interval, so that a read that began under this limit gets one. */
  private static final int HANDSHAKE_TIMEOUT_MS = 3_000;

  private static final int MAX_MESSAGE_BYTES = 16 << 20;
  private static final int MAX_THREADS = 64;

  private GroupChannel() {}

  /** The first of the ports where members of a cluster with a node list look for each other. */
  static int basePort(String cluster) {
    long hash = Hashing.farmHashFingerprint64().hashString(cluster, UTF_8).asLong();
    int bases = ClusterPorts.LAST - ClusterPorts.FIRST - PORTS + 2;
    return ClusterPorts.FIRST + (int) Long.remainderUnsigned(hash, bases);
  }

  /** A group's name without special characters: it is also the name of a directory. */
  static String groupName(String cluster) {
    return "pmfs-" + Hashing.sha256().hashString(cluster, UTF_8).toString().substring(0, 32);
  }

  /** Creates a channel that is not connected yet. */
  static JChannel create(ClusterSettings settings) throws Exception {
    boolean few = settings.nodes().size() <= FEW_NODES;
    GroupTimings timings = settings.timings();
    long merge = timings.merge().toMillis();
    List<Protocol> protocols = new ArrayList<>();
    Transport transport = transport(settings);
    protocols.add(transport);
    protocols.add(discovery(settings, transport));
    protocols.add(
        new MERGE3()
            .setMinInterval(few ? merge : 10 * merge)
            .setMaxInterval(few ? 4 * merge : 30 * merge));
    protocols.add(
        new FD_ALL3()
            .setTimeout(timings.silence().toMillis())
            .setInterval(timings.heartbeat().toMillis()));
    protocols.add(new VERIFY_SUSPECT2().setTimeout(timings.verification().toMillis()));
    protocols.add(new NAKACK2().useMcastXmit(false).setXmitInterval(200));
    protocols.add(new UNICAST3().setXmitInterval(200).setConnCloseTimeout(5_000));
    protocols.add(new STABLE().setDesiredAverageGossip(5_000).setMaxBytes(1 << 20));
    GMS membership =
        new GMS()
            .setJoinTimeout(ADMISSION_FACTOR * timings.join().toMillis())
            .setMaxJoinAttempts(JOIN_ATTEMPTS);
    membership.printLocalAddress(false);
    protocols.add(membership);
    protocols.add(new UFC().setMaxCredits(4 << 20));
    protocols.add(new MFC().setMaxCredits(4 << 20));
    FRAG4 fragments = new FRAG4();
    fragments.setFragSize(60_000);
    protocols.add(fragments);
    return new JChannel(protocols);
  }

  private static final class Transport extends TCP {
    Transport() {
      setId(ClassConfigurator.getProtocolId(TCP.class));
    }

    boolean isConnected(Address address) {
      TcpServer server = srv;
      return server != null && server.connectionEstablishedTo(address);
    }
  }

  private static Transport transport(ClusterSettings settings) throws Exception {
    Transport tcp = new Transport();
    // A queue per connection would have a thread that spins forever if the connection is closed
    // while it is being established, as happens when two members connect to each other.
    tcp.nonBlockingSends(false);
    tcp.setBindAddress(settings.address());
    // With a directory, members announce their ports there, so any port will do.
    boolean anyPort = settings.directory() != null;
    tcp.setBindPort(anyPort ? 0 : basePort(settings.name()));
    tcp.setPortRange(anyPort ? 0 : PORTS - 1);
    tcp.setClientBindAddr(settings.address());
    tcp.setSockConnTimeout(CONNECT_TIMEOUT_MS);
    tcp.setMaxLength(MAX_MESSAGE_BYTES);
    tcp.tcpNodelay(true);
    // The kernel closes the connections of a killed process: the fastest way to detect that.
    tcp.enableSuspectEvents(true);
    // Members of other clusters may use the same ports; that deserves no log line.
    tcp.setLogDiscardMessages(false);
    tcp.setLogDiscardMessagesVersion(false);
    tcp.logAcceptError(false);
    tcp.disableDiagnostics();
    // Each thread sends its own messages, so that a thread that tries dead hosts delays no
    // heartbeat.
    tcp.setBundlerType("no-bundler");
    tcp.getThreadPool().setMinThreads(0).setMaxThreads(MAX_THREADS).setThreadDumpsEnabled(false);
    tcp.setSocketFactory(sockets(new SecretTls(settings.secret(), settings.name()).context()));
    return tcp;
  }

  private static DefaultSocketFactory sockets(SSLContext tls)
      throws GeneralSecurityException, IOException {
    DefaultSocketFactory sockets =
        new DefaultSocketFactory(tls.getSocketFactory(), new ProvenServerSockets(tls));
    sockets.setSocketConfigurator(socket -> limitHandshake((SSLSocket) socket));
    return sockets;
  }

  /** Makes server sockets for JGroups, which binds them itself. */
  private static final class ProvenServerSockets extends ServerSocketFactory {
    private final SSLContext tls;

    ProvenServerSockets(SSLContext tls) {
      this.tls = tls;
    }

    @Override
    public ServerSocket createServerSocket() throws IOException {
      return new ProvenServerSocket(
          tls.getSocketFactory(), Duration.ofMillis(HANDSHAKE_TIMEOUT_MS));
    }

    @Override
    public ServerSocket createServerSocket(int port) throws IOException {
      return createServerSocket(port, 0, null);
    }

    @Override
    public ServerSocket createServerSocket(int port, int backlog) throws IOException {
      return createServerSocket(port, backlog, null);
    }

    @Override
    public ServerSocket createServerSocket(int port, int backlog, @Nullable InetAddress address)
        throws IOException {
      ServerSocket socket = createServerSocket();
      socket.bind(new InetSocketAddress(address, port), backlog);
      return socket;
    }
  }

  /** Limits a handshake: the other end may stay silent, and JGroups would wait forever. */
  private static void limitHandshake(SSLSocket socket) {
    try {
      socket.setSoTimeout(HANDSHAKE_TIMEOUT_MS);
      socket.addHandshakeCompletedListener(
          event -> {
            try {
              event.getSocket().setSoTimeout(0);
            } catch (SocketException e) {
              log.trace("closed already", e);
            }
          });
    } catch (SocketException e) {
      log.trace("closed already", e);
    }
  }

  /** Call before closing a channel, which would else suspect the others when they disconnect. */
  static void expectClosing(JChannel channel) {
    if (channel.getProtocolStack().getTransport() instanceof TCP tcp) {
      tcp.enableSuspectEvents(false);
    }
  }

  private static Protocol discovery(ClusterSettings settings, Transport transport) {
    Path directory = settings.directory();
    if (directory != null) {
      return new FILE_PING()
          .setLocation(directory.toString())
          .removeAllDataOnViewChange(true)
          .removeOldCoordsOnViewChange(true);
    }
    int port = basePort(settings.name());
    TCPPING hosts =
        new NodeSearch(settings.address(), settings.timings().join(), transport::isConnected)
            .portRange(PORTS - 1);
    // Nodes of a job start together, so repeated searches also find those that listen a moment
    // later.
    hosts.setValue("num_discovery_runs", DISCOVERY_RUNS);
    hosts.setValue(
        "initial_hosts_str",
        settings.nodes().stream()
            .map(host -> host + "[" + port + "]")
            .collect(Collectors.joining(",")));
    return hosts;
  }

  static boolean isThisMachines(InetAddress address) {
    try (ServerSocket socket = new ServerSocket()) {
      socket.bind(new InetSocketAddress(address, 0));
      return true;
    } catch (IOException e) {
      return false;
    }
  }
}
