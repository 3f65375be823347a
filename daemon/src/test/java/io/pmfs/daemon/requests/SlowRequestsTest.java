package io.pmfs.daemon.requests;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

final class SlowRequestsTest {
  private static final LogLine.Request SLOW = Lines.read("train/a", 0, 4403, 1000, 12_345_678);

  private final List<String> lines = new ArrayList<>();
  private Instant now = Lines.TIME;
  private final SlowRequests slow = new SlowRequests(Duration.ofSeconds(10), () -> now, lines::add);

  private void report(int count) {
    for (int i = 0; i < count; i++) {
      slow.report(SLOW);
    }
  }

  @Test
  void tell_aRequest_saysWhoWaitedForWhatAndHowLong() {
    report(1);

    assertThat(lines)
        .containsExactly(
            "slow request: [uid:1000,gid:100,pid:4403] read (\"/train/a\",131072,0) took 12.346 s:"
                + " OK (1000)");
  }

  @Test
  void tell_manyInAMinute_saysTenAndThenHowManyMore() {
    report(SlowRequests.MOST_LINES + 1234);
    assertThat(lines).hasSize(SlowRequests.MOST_LINES);

    now = now.plus(SlowRequests.WINDOW).minusMillis(1);
    slow.settle();
    assertThat(lines).hasSize(SlowRequests.MOST_LINES);

    now = now.plusMillis(1);
    slow.settle();
    assertThat(lines.subList(SlowRequests.MOST_LINES, lines.size()))
        .containsExactly("slow requests: 1,234 more took at least 10 s within a minute");

    now = now.plus(SlowRequests.WINDOW);
    slow.settle();
    assertThat(lines).hasSize(SlowRequests.MOST_LINES + 1);
  }

  @Test
  void tell_inTheNextMinute_saysTenAgain() {
    report(SlowRequests.MOST_LINES);
    now = now.plus(SlowRequests.WINDOW);
    report(SlowRequests.MOST_LINES + 1);

    assertThat(lines).hasSize(2 * SlowRequests.MOST_LINES);
  }

  private static WaitingRequest waiting(long inode) {
    Call call = new Call(0, 0, 4403, "read", FileName.of("train/" + inode), -1, null, 131072, 0);
    return new WaitingRequest(Lines.asked(inode, 0), call, 12_345_678_901L);
  }

  @Test
  void tell_requestsThatWait_areSaidOnceEach() {
    WaitingRequest first = waiting(1);
    slow.report(List.of(first));
    slow.report(List.of(first, waiting(2)));
    slow.report(List.of());

    assertThat(lines)
        .containsExactly(
            "slow request: [uid:0,gid:0,pid:4403] read (\"/train/1\",131072,0) has waited for"
                + " 12.346 s and has no answer",
            "slow request: [uid:0,gid:0,pid:4403] read (\"/train/2\",131072,0) has waited for"
                + " 12.346 s and has no answer");
  }

  @Test
  void tell_moreThatWaitThanAreSaid_areCountedOnceEach() {
    List<WaitingRequest> many =
        LongStream.range(0, SlowRequests.MOST_LINES + 54)
            .mapToObj(SlowRequestsTest::waiting)
            .toList();
    slow.report(many);
    slow.report(many);
    report(3);
    now = now.plus(SlowRequests.WINDOW);
    slow.settle();

    assertThat(lines.subList(SlowRequests.MOST_LINES, lines.size()))
        .containsExactly(
            "slow requests: 3 more took at least 10 s within a minute",
            "slow requests: 54 more waited for at least 10 s within a minute");
  }

  @Test
  void leastNanos_turnedOff_isMoreThanAnyRequestTakes() {
    assertThat(slow.leastNanos()).isEqualTo(10_000_000_000L);
    assertThat(slow.isOn()).isTrue();
    SlowRequests off = new SlowRequests(Duration.ZERO, () -> now, lines::add);
    assertThat(off.leastNanos()).isEqualTo(Long.MAX_VALUE);
    assertThat(off.isOn()).isFalse();
  }
}
