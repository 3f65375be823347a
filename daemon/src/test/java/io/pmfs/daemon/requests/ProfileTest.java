package io.pmfs.daemon.requests;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.pmfs.metadata.FileName;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import org.junit.jupiter.api.Test;

final class ProfileTest {
  private static Profile of(ProfileKey key, LogLine... lines) {
    Profile profile = new Profile(key);
    List.of(lines).forEach(profile::add);
    return profile;
  }

  private static final LogLine[] SOME = {
    Lines.read("train/a", 0, 1, 1000, 3000),
    Lines.read("train/a", 1, 1, 500, 1000),
    Lines.read("train/b", 2, 2, 200, 4000),
    Lines.of("lookup", FileName.of("train/c"), "ENOENT"),
    Lines.of("readdir", FileName.of("train"), "OK"),
    Lines.of("statfs", null, "OK"),
    new LogLine.Missing(Lines.TIME, 41, "why"),
  };

  @Test
  void report_byOperation_addsUpExactly() {
    Profile profile = of(ProfileKey.OPERATION, SOME);
    profile.add(null);

    Profile.Report report = profile.report(true, profile.seconds(), 10);

    assertThat(report.seconds()).isCloseTo(2.004, within(1e-9));
    assertThat(report.missing()).isEqualTo(41);
    assertThat(report.unreadable()).isEqualTo(1);
    assertThat(report.rows())
        .extracting(Profile.Row::key)
        .containsExactly("read", "lookup", "readdir", "statfs");
    Profile.Row read = report.rows().get(0);
    assertThat(read.count()).isEqualTo(3);
    assertThat(read.bytes()).isEqualTo(1700);
    assertThat(read.failed()).isZero();
    assertThat(read.perSecond()).isCloseTo(3 / 2.004, within(1e-9));
    assertThat(read.timeShare()).isCloseTo(8000 / 8021.0, within(1e-9));
    assertThat(read.meanMillis()).isCloseTo(8 / 3.0, within(1e-9));
    assertThat(read.p50Millis()).isCloseTo(3, within(0.03));
    assertThat(read.p99Millis()).isEqualTo(4);
    assertThat(read.longestMillis()).isEqualTo(4);
    assertThat(report.rows().get(1).failed()).isEqualTo(1);
    assertThat(report.all().count()).isEqualTo(6);
    assertThat(report.all().timeShare()).isEqualTo(1);
    assertThat(report.others()).isNull();
  }

  @Test
  void report_requestsRefusedByProtocol_areNotFailed() {
    Profile.Report report =
        of(
                ProfileKey.OPERATION,
                Lines.of("opendir", FileName.of("train"), "ENOSYS"),
                Lines.of("flush", FileName.of("train/a"), "ENOSYS"),
                Lines.of("read", FileName.of("train/a"), "EIO"))
            .report(true, 1, 9);

    assertThat(report.all().count()).isEqualTo(3);
    assertThat(report.all().failed()).isEqualTo(1);
  }

  @Test
  void report_byOtherKeys_groupsByThem() {
    assertThat(keys(ProfileKey.PATH))
        .containsExactly("/train/a", "/train/b", "#12", "/train", "/train/c");
    assertThat(keys(ProfileKey.DIRECTORY)).containsExactly("/train", "#12");
    assertThat(keys(ProfileKey.PID)).containsExactly("1", "2", "4403");
    assertThat(keys(ProfileKey.UID)).containsExactly("1000", "0");
    assertThat(
            of(ProfileKey.DIRECTORY, Lines.of("getattr", FileName.of("a"), "OK"))
                .report(true, 1, 9)
                .rows())
        .extracting(Profile.Row::key)
        .containsExactly("/");
  }

  private static List<String> keys(ProfileKey key) {
    return of(key, SOME).report(true, 1, 10).rows().stream().map(Profile.Row::key).toList();
  }

  @Test
  void report_moreRowsThanWanted_sumsUpTheRest() {
    Profile.Report report = of(ProfileKey.PATH, SOME).report(true, 1, 1);

    assertThat(report.rows()).extracting(Profile.Row::key).containsExactly("/train/a");
    assertThat(report.otherKeys()).isEqualTo(4);
    Profile.Row others = Objects.requireNonNull(report.others());
    assertThat(others.count()).isEqualTo(4);
    assertThat(others.bytes()).isEqualTo(200);
    assertThat(others.longestMillis()).isEqualTo(4);
  }

  @Test
  void add_moreKeysThanAreKept_keepsTheOnesThatMatterAndSumsThatAreExact() {
    Profile profile = new Profile(ProfileKey.PATH, 100);
    for (int i = 0; i < 10_000; i++) {
      profile.add(Lines.read("heavy/" + i % 5, 0, 1, 10, 100_000));
      profile.add(Lines.read("light/" + i, 0, 1, 1, 10));
    }

    Profile.Report report = profile.report(true, 1, 5);

    assertThat(report.rows())
        .extracting(Profile.Row::key)
        .containsExactlyInAnyOrder("/heavy/0", "/heavy/1", "/heavy/2", "/heavy/3", "/heavy/4");
    assertThat(report.rows()).allMatch(row -> row.count() == 2000 && row.bytes() == 20_000);
    Profile.Row others = Objects.requireNonNull(report.others());
    assertThat(others.count()).isEqualTo(10_000);
    assertThat(others.bytes()).isEqualTo(10_000);
    assertThat(report.otherKeys()).isEqualTo(10_000);
    assertThat(report.all().count()).isEqualTo(20_000);
  }

  @Test
  void drain_interval_beginsAnew() {
    Profile profile = of(ProfileKey.OPERATION, SOME);

    assertThat(profile.drain(2, 10).all().count()).isEqualTo(6);

    Profile.Report next = profile.drain(2, 10);
    assertThat(next.all().count()).isZero();
    assertThat(next.missing()).isZero();
    assertThat(next.rows()).isEmpty();
    assertThat(profile.seconds()).isZero();
  }

  @Test
  void table_ofAReport_hasItsNumbers() {
    Profile profile = of(ProfileKey.OPERATION, SOME);
    profile.add(null);

    List<String> lines =
        ProfileTable.of(
            profile.report(true, 2, 2), bytes -> String.format(Locale.ROOT, "%d B", bytes));

    assertThat(lines.get(0)).isEqualTo("6 requests in 2.0 s, 1700 B");
    assertThat(lines.get(1))
        .isEqualTo(
            "operation          count    per s    bytes    time     mean      p50      p99  longest"
                + "  failed");
    assertThat(lines.get(2))
        .isEqualTo(
            "read                   3      1.5   1700 B  99.7 %  2.67 ms  3.01 ms  4.00 ms  4.00 ms"
                + "       0");
    assertThat(lines.get(3)).startsWith("lookup                 1 ").endsWith(" 1");
    assertThat(lines.get(4)).startsWith("others (2)             2 ");
    assertThat(lines.subList(5, 7))
        .containsExactly("41 requests had no line and are missing here", "1 lines are malformed");
  }

  @Test
  void table_withLongKeys_hasThemBehindTheNumbers() {
    Profile profile = of(ProfileKey.PATH, Lines.read("train/n01/image.jpg", 0, 1, 10, 3_000_000));

    List<String> lines = ProfileTable.of(profile.report(true, 0, 9), bytes -> bytes + " B");

    assertThat(lines.get(2)).contains(" 3.00 s ").endsWith("  /train/n01/image.jpg");
  }
}
