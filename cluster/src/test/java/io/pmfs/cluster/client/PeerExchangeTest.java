package io.pmfs.cluster.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.FakeService;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.RequestSignature;
import java.time.InstantSource;
import java.util.UUID;
import org.junit.jupiter.api.Test;

final class PeerExchangeTest {
  private final Member peer = new Member(new UUID(1, 2), 3, "peer", "127.0.0.1", 1);

  private final PeerExchange exchange =
      new PeerExchange(
          new PeerLink(
              peer,
              new PeerLink.Counts(),
              new PeerConnections(peer, new Bootstrap(), PeerTimeouts.DEFAULTS, 1),
              PeerTimeouts.DEFAULTS,
              1,
              new RequestSignature(FakeService.key(), peer.instance(), InstantSource.system()),
              asked -> false),
          new PeerReaders.Small(peer),
          true,
          Patience.endless());

  @Test
  void exchange_whoseConnectionWasClosedByThePeer_isUnheard() {
    exchange.closed("closed the connection");
    assertThat(exchange.isUnheard()).isTrue();
  }

  /** Who gives up closes the connection, too. To ask once more would take twice the time. */
  @Test
  void exchange_whoseConnectionWasClosedAfterItWasGivenUp_isNot() {
    exchange.fail(PeerException.Kind.UNREACHABLE, "is silent");
    exchange.closed("closed the connection");
    assertThat(exchange.isUnheard()).isFalse();
  }
}
