package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.metadata.FileName;
import java.util.BitSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class WrongClaimsTest {
  private static final FileName PATH = FileName.of("large");

  private final Member peer = new Member(new UUID(1, 2), 3, "peer", "127.0.0.1", 1);
  private final WrongClaims claims = new WrongClaims();

  @Test
  void peer_thatRefusesWhatItClaimsAgainAndAgain_isNamed() {
    for (int i = 1; i < WrongClaims.MANY; i++) {
      claims.refused(peer, "no copy");
    }
    assertThat(claims.isNamed(peer)).isFalse();
    claims.refused(peer, "no copy");
    assertThat(claims.isNamed(peer)).isTrue();
    claims.keepOnly(Set.of());
    assertThat(claims.isNamed(peer)).isFalse();
  }

  @Test
  void peer_thatRefusesNowAndThen_isNotNamed() {
    for (int i = 0; i < 10 * WrongClaims.MANY; i++) {
      claims.refused(peer, "no copy");
      if (i % (WrongClaims.MANY - 1) == 0) {
        claims.gave(peer);
      }
    }
    assertThat(claims.isNamed(peer)).isFalse();
  }

  @ParameterizedTest
  @CsvSource({
    "1, 9, 9, false",
    "1, 10, 9, true",
    "1, 9, 10, true",
    "4, 2, 9, false",
    "4, 3, 9, true",
  })
  void peer_thatNamesBlocksThatTheFileLacks_isNamed(
      int unit, int lastUnit, int granted, boolean isNamed) {
    BitSet units = new BitSet();
    units.set(lastUnit);
    claims.said(peer, PATH, new HeldBlocks(unit, units, 1, List.of(), List.of(granted)), 10);
    assertThat(claims.isNamed(peer)).isEqualTo(isNamed);
  }
}
