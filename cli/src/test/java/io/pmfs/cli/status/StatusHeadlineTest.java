package io.pmfs.cli.status;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import io.pmfs.daemon.report.Engagement;
import io.pmfs.daemon.report.KernelReport;
import io.pmfs.daemon.report.MissingNode;
import io.pmfs.daemon.report.MountReport;
import io.pmfs.daemon.report.RecentReport;
import io.pmfs.daemon.report.SampleReport;
import io.pmfs.daemon.report.StatusReport;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

final class StatusHeadlineTest {
  private static final Gson GSON = new Gson();

  private JsonObject json = GSON.toJsonTree(SampleReport.of("/m", "/s")).getAsJsonObject();

  private StatusHeadlineTest() {
    json.remove("waiting");
  }

  private List<String> headline() {
    List<String> lines = StatusHeadline.of(GSON.fromJson(json, StatusReport.class));
    assertThat(lines).hasSizeLessThanOrEqualTo(5).allMatch(line -> !line.contains("engaged"));
    return lines.stream().map(String::strip).toList();
  }

  private void recent(
      List<RecentReport.TierBytes> tiers,
      long kernel,
      long fetched,
      long peers,
      long source,
      long operations,
      @Nullable Long idle) {
    long bytes =
        kernel
            + fetched
            + peers
            + source
            + tiers.stream().mapToLong(RecentReport.TierBytes::bytes).sum();
    RecentReport recent =
        new RecentReport(bytes, tiers, kernel, 0L, fetched, peers, source, operations, idle);
    json.add("recent", GSON.toJsonTree(recent));
  }

  private void tier(String state, long available) {
    JsonArray tiers = json.getAsJsonArray("tiers");
    while (tiers.size() > 1) {
      tiers.remove(0);
    }
    tiers.get(0).getAsJsonObject().addProperty("state", state);
    tiers.get(0).getAsJsonObject().addProperty("availableBytes", available);
  }

  private static RecentReport.TierBytes bytes(String kind, long bytes) {
    return new RecentReport.TierBytes(kind, bytes);
  }

  @Test
  void of_clusterWithMissingNodes_namesThemAndIsNotJustWorking() {
    json =
        GSON.toJsonTree(
                SampleReport.withMissing(
                    List.of(
                        new MissingNode("n3", "10.0.0.3", "2026-11-26T18:03:12.5Z", true),
                        new MissingNode("n4", null, "2026-11-26T18:00:00Z", false))))
            .getAsJsonObject();
    json.add("engagement", GSON.toJsonTree(new Engagement("engaged", "no read needed it")));
    List<String> lines = StatusHeadline.of(GSON.fromJson(json, StatusReport.class));

    assertThat(lines).hasSizeLessThanOrEqualTo(6);
    assertThat(lines.get(1)).isEqualTo("  working without all nodes: no read needed it");
    assertThat(lines.get(2))
        .matches(
            "  nodes        2 of 4 expected nodes, missing: n3 since 2026-11-2\\d \\d\\d:\\d3:12;"
                + " n4 since 2026-11-2\\d \\d\\d:\\d0:00, the start of this mount");
  }

  @Test
  void of_mountThatWasNotRead_hasNoShares() {
    recent(List.of(bytes("ssd", 0)), 0, 0, 0, 0, 0, null);

    assertThat(headline())
        .contains("source       not asked since the daemon started")
        .noneMatch(line -> line.startsWith("read lately"));
  }

  @Test
  void of_detachedMount_saysWhatIsStillOpen() {
    assertThat(headline()).contains("/s on /m");
    for (var expected :
        Map.of(
                1, "/s on /m, detached: 1 file still open",
                1234, "/s on /m, detached: 1,234 files still open",
                0, "/s on /m, detached: still in use")
            .entrySet()) {
      json.add(
          "detached",
          GSON.toJsonTree(new MountReport.Detached(expected.getKey(), List.of("pid 7"))));
      assertThat(headline()).contains(expected.getValue());
    }
    json.add("detached", GSON.toJsonTree(MountReport.Detached.UNCOUNTED));
    assertThat(headline()).contains("/s on /m, detached: still in use");
  }

  @Test
  void of_firstEpoch_cameFromTheSourceAndWhatWasJustCopied() {
    recent(List.of(bytes("ssd", 0)), 0, 75, 0, 25, 1234, 0L);

    assertThat(headline())
        .contains(
            "read lately  100 B: 75 % just copied, 25 % the source",
            "source       1,234 operations in the last minute, asked just now");
  }

  @Test
  void of_allFromTiers_saysHowLongTheSourceWasSpared() {
    recent(List.of(bytes("pm", 60), bytes("ssd", 30), bytes("ssd", 10)), 0, 0, 0, 0, 0, 11_000L);

    assertThat(headline())
        .contains("read lately  100 B: 60 % pm, 40 % ssd", "source       not asked for 3h 3m");
  }

  @Test
  void of_passthrough_saysThatTheKernelReads() {
    recent(List.of(bytes("ssd", 10)), 90, 0, 0, 0, 1, 12L);

    assertThat(headline())
        .contains(
            "read lately  at most 100 B: 10 % ssd, 90 % copies that the kernel reads itself",
            "source       1 operation in the last minute, asked 12s ago");
  }

  @Test
  void of_copiesOfOtherJobs_namesThem() {
    recent(List.of(bytes("ssd", 1)), 0, 1, 2, 0, 0, 70L);

    assertThat(headline())
        .contains("read lately  4 B: 25 % ssd, 25 % just copied, 50 % copies of other jobs");
  }

  @Test
  void of_failedTier_saysSo() {
    tier("failed", 0);

    assertThat(headline()).contains("room         ssd failed");
  }

  @Test
  void of_fullDisk_hasNoRoom() {
    tier("full", 0);

    assertThat(headline()).contains("room         ssd none of 1.0 TiB (full)");
  }

  @Test
  void of_tierWithACapacityThatItsDiskHas_saysOnlyHowMuchIsLeft() {
    tier("on", (1L << 40) - 1536);

    assertThat(headline()).contains("room         ssd 1.0 TiB of 1.0 TiB");
  }

  @Test
  void of_absentSourceAndWaitingRequest_areSaid() {
    json.add("sourceAbsence", new JsonPrimitive("it hangs"));
    json.add("waiting", GSON.toJsonTree(new KernelReport.Waiting(1, 63, "read", "x", 7)));

    assertThat(headline())
        .contains(
            "source       away: it hangs; copies are still served; 1 request of a reader has"
                + " waited for 1m 3s");
  }

  @Test
  void of_olderDaemonAndHostileNames_isShown() {
    json.remove("recent");
    JsonElement none = JsonNull.INSTANCE;
    json.add("engagement", none);
    json.addProperty("source", "/s\u001b[2J\n");

    assertThat(headline()).containsExactly("/s%1B[2J%0A on /m");
  }

  @Test
  void percents_alwaysAddUpToAHundred() {
    assertThat(Percents.of(List.of(1L, 1L, 1L))).containsExactly(34, 33, 33);
    assertThat(Percents.of(List.of(999_999L, 1L))).containsExactly(100, 0);
    assertThat(Percents.of(List.of(0L, 0L))).containsExactly(0, 0);
    assertThat(Percents.of(List.of(1L << 62, 1L << 61)).stream().mapToInt(i -> i).sum())
        .isEqualTo(100);
  }
}
