package io.pmfs.cluster.members;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class AnnouncementTest {
  private static final UUID ID = UUID.fromString("12345678-1234-1234-1234-123456789abc");

  @ParameterizedTest
  @ValueSource(longs = {0, 1, -1, Long.MIN_VALUE, Long.MAX_VALUE})
  void parse_whatWasAnnounced_isTheMember(long instance) {
    Member member = new Member(ID, instance, "n\u00f6de 1", "::1", 65_535);
    assertThat(Announcement.parse(Announcement.of(member))).contains(member);
  }

  @Test
  void of_nameWithControlCharacters_isInOneLine() {
    Member member = new Member(ID, 1, "a\tb\nc", "127.0.0.1", 1);
    assertThat(Announcement.parse(Announcement.of(member)).map(Member::name)).contains("a%09b%0Ac");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "1",
        "1\t12345678-1234-1234-1234-123456789abc\t1\t127.0.0.1\t1",
        "2\t12345678-1234-1234-1234-123456789abc\t1\t127.0.0.1\t1\tn",
        "1\t12345678\t1\t127.0.0.1\t1\tn",
        "1\t12345678-1234-1234-1234-123456789abc\tx\t127.0.0.1\t1\tn",
        "1\t12345678-1234-1234-1234-123456789abc\t1\thost.example.org\t1\tn",
        "1\t12345678-1234-1234-1234-123456789abc\t1\t127.0.0.1\t0\tn",
        "1\t12345678-1234-1234-1234-123456789abc\t1\t127.0.0.1\t65536\tn",
        "1\t12345678-1234-1234-1234-123456789abc\t1\t127.0.0.1\t1\tn\tmore",
      })
  void parse_anythingElse_isNobody(String text) {
    assertThat(Announcement.parse(text)).isEmpty();
  }

  @Test
  void parse_longText_isNobody() {
    String text = Announcement.of(new Member(ID, 1, "n".repeat(2_000), "127.0.0.1", 1));
    assertThat(Announcement.parse(text)).isEmpty();
  }
}
