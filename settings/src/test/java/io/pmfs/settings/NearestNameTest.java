package io.pmfs.settings;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class NearestNameTest {
  @ParameterizedTest
  @CsvSource({"'','',0", "a,'',1", "kitten,sitting,3", "tier,teir,2", "tier,tier,0"})
  void distance_ofTwoWords_countsEdits(String from, String to, int distance) {
    assertThat(NearestName.distance(from, to)).isEqualTo(distance);
    assertThat(NearestName.distance(to, from)).isEqualTo(distance);
  }

  @Test
  void to_mistypedKey_findsIt() {
    assertThat(NearestName.to("teir", MountOption.keys())).isEqualTo("tier");
    assertThat(NearestName.to("keepfree", MountOption.keys())).isEqualTo("keep-free");
    assertThat(NearestName.to("fetch_threads", MountOption.keys())).isEqualTo("fetch-threads");
  }

  @Test
  void isMeantFor_twoEditsAtMost_isTrue() {
    assertThat(NearestName.isMeantFor("PMFS_TEIR", "PMFS_TIER")).isTrue();
    assertThat(NearestName.isMeantFor("PMFS_KEPT", "PMFS_LINGER")).isFalse();
  }

  @Test
  void to_nothingNear_isNull() {
    assertThat(NearestName.to("zzzzzzzz", List.of("tier", "source"))).isNull();
    assertThat(NearestName.to("x", List.of())).isNull();
  }
}
