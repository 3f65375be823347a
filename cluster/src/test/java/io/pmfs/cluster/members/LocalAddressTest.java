package io.pmfs.cluster.members;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.net.InetAddresses;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.Test;

final class LocalAddressTest {
  private static final String OWN = "10.1.0.2";

  /** One of a cluster's nodes, node2.example.org, with a public and a private address. */
  private static final class Node implements LocalAddress.Machine {
    private final Map<String, String> names;
    private final List<String> addresses;

    Node(Map<String, String> names, List<String> addresses) {
      this.names = names;
      this.addresses = addresses;
    }

    Node() {
      this(
          Map.of("node1", "10.1.0.1", "node2", OWN, "node3", "10.1.0.3", "localhost", "127.0.0.1"),
          List.of("127.0.0.1", "8.8.8.8", OWN));
    }

    @Override
    public String hostName() {
      return "node2.example.org";
    }

    @Override
    public List<InetAddress> addresses() {
      return addresses.stream().map(InetAddresses::forString).toList();
    }

    @Override
    public InetAddress[] resolve(String host) throws UnknownHostException {
      String address = names.getOrDefault(host, host);
      if (!InetAddresses.isInetAddress(address)) {
        throw new UnknownHostException(host);
      }
      return new InetAddress[] {InetAddresses.forString(address)};
    }
  }

  @Test
  void choose_given_isThatOne() {
    assertThat(LocalAddress.choose("8.8.8.8", List.of("node2"), new Node()))
        .isEqualTo(InetAddresses.forString("8.8.8.8"));
    assertThat(LocalAddress.choose("127.0.0.9", List.of(), new Node()))
        .isEqualTo(InetAddresses.forString("127.0.0.9"));
  }

  @Test
  void choose_givenOneOfAnotherMachine_isRefused() {
    assertThatThrownBy(() -> LocalAddress.choose("10.1.0.1", List.of(), new Node()))
        .hasMessage("10.1.0.1: is not an address of this machine");
    assertThatThrownBy(() -> LocalAddress.choose("nobody", List.of(), new Node()))
        .hasMessage("nobody: is not an address of this machine");
  }

  @Test
  void choose_listOfNodes_isTheOwnOne() {
    assertThat(LocalAddress.choose(null, List.of("node1", "x", "node2", "node3"), new Node()))
        .isEqualTo(InetAddresses.forString(OWN));
    assertThat(LocalAddress.choose(null, List.of("10.1.0.1", "8.8.8.8"), new Node()))
        .isEqualTo(InetAddresses.forString("8.8.8.8"));
  }

  @Test
  void choose_ownNameIsALoopbackAddressInAListOfMany_isThePrivateOne() {
    Node debian =
        new Node(Map.of("node1", "10.1.0.1", "node2", "127.0.1.1"), List.of("127.0.0.1", OWN));
    assertThat(LocalAddress.choose(null, List.of("node1", "node2"), debian))
        .isEqualTo(InetAddresses.forString(OWN));
  }

  @Test
  void choose_localhostOnly_isALoopbackAddress() {
    assertThat(LocalAddress.choose(null, List.of("localhost"), new Node()))
        .isEqualTo(InetAddresses.forString("127.0.0.1"));
  }

  @Test
  void choose_nothingKnown_isThePrivateOne() {
    assertThat(LocalAddress.choose(null, List.of(), new Node()))
        .isEqualTo(InetAddresses.forString(OWN));
  }

  @Test
  void choose_noPrivateAddress_isAClearError() {
    Node alone = new Node(Map.of(), List.of("127.0.0.1", "8.8.8.8"));
    assertThatThrownBy(() -> LocalAddress.choose(null, List.of("node1"), alone))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("give the address that its peers should use");
  }

  @Test
  void choose_thisMachine_hasALoopbackAddress() {
    assertThat(LocalAddress.choose("127.0.0.1", List.of()).isLoopbackAddress()).isTrue();
  }

  private static Member member(int number, String name, String host) {
    return new Member(new UUID(0, number), 1, name, host, 1);
  }

  @Test
  void memberOn_aHostWithTheNameOfAMember_needsNoAddress() {
    Member other = member(1, "node1.example.org", "10.1.0.1");
    Member named = member(2, "node2.example.org", OWN);
    assertThat(LocalAddress.memberOn("node2", List.of(), List.of(other, named))).isEqualTo(named);
    assertThat(LocalAddress.memberOn(OWN, List.of(), List.of(other, named))).isEqualTo(named);
    assertThat(LocalAddress.memberOn("head", List.of(), List.of(other, named))).isNull();
  }

  @Test
  void memberOn_aHostWithAnotherName_isTheMemberAtItsAddress() {
    Member other = member(1, "node1", "10.1.0.1");
    Member at = member(2, "node2", OWN);
    List<InetAddress> addresses =
        List.of(InetAddresses.forString("8.8.8.8"), InetAddresses.forString(OWN));
    assertThat(LocalAddress.memberOn("head", addresses, List.of(other, at))).isEqualTo(at);
  }
}
