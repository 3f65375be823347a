package io.pmfs.cluster.members;

import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Chooses the address of this machine that its peers should use. */
public final class LocalAddress {
  /** The facts about a machine on which the choice depends. */
  interface Machine {
    String hostName();

    /** Addresses of the interfaces that are up. */
    List<InetAddress> addresses();

    InetAddress[] resolve(String host) throws UnknownHostException;
  }

  private LocalAddress() {}

  /**
   * Returns the given address; without one, the address by which the list of nodes names this
   * machine; else the first private address.
   *
   * @param given a name or a literal address
   * @param nodes as {@link NodeList} returns them; may be empty
   * @throws IllegalArgumentException with a one-line message, if none of these is an address of
   *     this machine
   */
  public static InetAddress choose(@Nullable String given, List<String> nodes) {
    return choose(given, nodes, new ThisMachine());
  }

  /** Whether a host is this machine, by its name or by its addresses. */
  public static boolean isHere(String host) {
    Machine machine = new ThisMachine();
    return isSameHost(host, machine.hostName())
        || named(host, machine.addresses(), machine).isPresent();
  }

  /**
   * Finds the member on a host: by the host's name, or else by its address. Null if no member is
   * there. Does not ask DNS.
   *
   * @param addresses of the host, as far as they are known
   */
  public static @Nullable Member memberOn(
      String host, List<InetAddress> addresses, List<Member> members) {
    return members.stream()
        .filter(member -> isSameHost(host, member.name()) || host.equals(member.host()))
        .findFirst()
        .or(() -> members.stream().filter(member -> isAt(member, addresses)).findFirst())
        .orElse(null);
  }

  private static boolean isAt(Member member, List<InetAddress> addresses) {
    return addresses.stream().anyMatch(known -> known.getHostAddress().equals(member.host()));
  }

  /** The addresses of a host, for which DNS may take long; none if it does not know them. */
  public static List<InetAddress> addressesOf(String host) {
    try {
      return List.of(InetAddress.getAllByName(host));
    } catch (UnknownHostException e) {
      return List.of();
    }
  }

  static InetAddress choose(@Nullable String given, List<String> nodes, Machine machine) {
    List<InetAddress> local = machine.addresses();
    if (given != null) {
      return named(given, local, machine)
          .orElseThrow(
              () -> new IllegalArgumentException(given + ": is not an address of this machine"));
    }
    Optional<InetAddress> listed =
        nodes.stream()
            .sorted(Comparator.comparing(node -> !isSameHost(node, machine.hostName())))
            .flatMap(node -> named(node, local, machine).stream())
            // This machine's name may resolve to 127.0.1.1, where other nodes cannot reach it.
            .filter(address -> !address.isLoopbackAddress() || nodes.size() == 1)
            .findFirst();
    if (listed.isPresent()) {
      return listed.get();
    }
    return local.stream()
        .filter(InetAddress::isSiteLocalAddress)
        .findFirst()
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "none of the nodes is this machine, and it has no private address; give the"
                        + " address that its peers should use"));
  }

  /** Whether two host names are equal apart from their domains. */
  private static boolean isSameHost(String a, String b) {
    return firstLabel(a).equalsIgnoreCase(firstLabel(b));
  }

  /** The name of a host without its domain. */
  static String firstLabel(String name) {
    int dot = name.indexOf('.');
    return dot < 0 ? name : name.substring(0, dot);
  }

  private static Optional<InetAddress> named(
      String host, List<InetAddress> local, Machine machine) {
    try {
      for (InetAddress address : machine.resolve(host)) {
        // All of 127.0.0.0/8 is this machine, but the interface lists only one of these addresses.
        if (address.isLoopbackAddress() || local.contains(address)) {
          return Optional.of(address);
        }
      }
      return Optional.empty();
    } catch (UnknownHostException e) {
      return Optional.empty();
    }
  }

  private static final class ThisMachine implements Machine {
    @Override
    public String hostName() {
      try {
        return InetAddress.getLocalHost().getHostName();
      } catch (UnknownHostException e) {
        return "";
      }
    }

    @Override
    public List<InetAddress> addresses() {
      try {
        return NetworkInterface.networkInterfaces()
            .filter(ThisMachine::isUp)
            .flatMap(NetworkInterface::inetAddresses)
            .toList();
      } catch (SocketException e) {
        return List.of();
      }
    }

    private static boolean isUp(NetworkInterface network) {
      try {
        return network.isUp();
      } catch (SocketException e) {
        return false;
      }
    }

    @Override
    public InetAddress[] resolve(String host) throws UnknownHostException {
      return InetAddress.getAllByName(host);
    }
  }
}
