package io.pmfs.cli.status;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.KernelReport;
import io.pmfs.daemon.report.MissingNode;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.report.SampleReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.report.TierReport;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

final class StatusTableTest {
  @Test
  void of_report_readsLikeThis() {
    assertThat(StatusTable.of(SampleReport.of("/mnt/dataset", "/lustre/imagenet")))
        .isEqualTo(
            """
            /lustre/imagenet on /mnt/dataset
              working: the source was asked for 12 % of what was read
              read lately  3.9 KiB: 75 % pm, less than 1 % ssd, 13 % just copied, 12 % the source
              source       42 operations in the last minute, asked 12s ago; 3 requests of readers wait, the longest for 12s
              room         pm none of 200 GiB (full), ssd 72.0 GiB of 1.0 TiB (its disk has no more beyond --keep-free)

                           kind state           used  capacity       copies         hits  place
              tier 1       pm   full         200 GiB   200 GiB    1,234,567          600  /mnt/pmem0/pmfs
                           quota; 500 GiB of content (2.50 to 1), zstd:3; not DAX: ext4 on /dev/pmem0 mounted without dax
              tier 2       ssd  on           1.5 KiB   1.0 TiB            1            0  /local/pmfs

              daemon       pid 1 of user ada, up 1h 2m
              reading      page-cache over jnr (read-only)
              bridge       jnr (as requested)
              log          /var/log/pmfs/x.log
              state        /local/pmfs/state
              access log   /var/log/pmfs/x.access (1,234 requests are missing)
              memory       200 MiB resident, heap 50.0 MiB of 192 MiB
              reads        1,000 requests, 3.9 KiB, 75.0 % from tiers (2.9 KiB), 500 B just fetched, 500 B from the source, 0 errors
              requests     read 10 (p50 1.50 ms, p99 2.00 ms), lookup 2 (p50 0.50 ms, p99 1.00 ms)
              waiting      3 requests, the longest for 12s: read of part-000/x by pid 4711
              staging      busy, 1 active, 2 queued, 4 done, 5 failed, 3 dropped, 9 without room, 8 evicted
              checks       6 copies verified, 7 mismatches
              source ops   42 operations: 1 opens, 2 reads (1.0 MiB), 4 stats, 5 lists, 6 readlinks, 7 xattrs, 8 statfs, 9 seeks\
            """
                .stripTrailing());
  }

  @Test
  void of_failedRequestsAndNumbersThatChange_saysSo() {
    StatusReport report =
        SampleReport.failing(
            new KernelReport.Failures(
                3512, 4000, "read", "train/a%0A", "ESTALE", "2026-11-26T18:00:00Z"),
            43);
    assertThat(StatusHeadline.of(report))
        .startsWith(
            "/lustre/imagenet on /mnt/dataset",
            "  working with errors: the source was asked for 12 % of what was read",
            "  errors       3,512 requests of readers failed in the last ten minutes, the last at"
                + " 2026-11-26T18:00:00Z: read of /train/a%0A: ESTALE");
    assertThat(StatusTable.of(report))
        .contains(
            "numbers      they change at the source (43 changes seen), so files are"
                + " identified by path, size and times");
  }

  @Test
  void of_severalMounts_isTheHeadlineOfEach() {
    StatusReport one = SampleReport.of("/mnt/a", "/lustre/a");
    StatusReport other = SampleReport.of("/mnt/b", "/lustre/b");

    assertThat(StatusTable.of(List.of(one))).isEqualTo(StatusTable.of(one));
    assertThat(StatusTable.of(List.of(one, other)))
        .isEqualTo(
            String.join("\n", StatusHeadline.of(one))
                + "\n\n"
                + String.join("\n", StatusHeadline.of(other))
                + "\n\npmfs status MOUNTPOINT shows more of a mount.");
    assertThat(StatusTable.of(List.of())).isEmpty();
  }

  private static TierReport tier(long usedBytes, long contentBytes) {
    return SampleReport.with(
        SampleReport.of("/m", "/s").dataset().tiers().get(0),
        Map.of("usedBytes", usedBytes, "contentBytes", contentBytes));
  }

  @Test
  void ratio_ofATierThatIsNotCounted_isNotSaid() {
    assertThat(StatusTable.ratio(tier(0, 2_115_000))).isEmpty();
    assertThat(StatusTable.ratio(tier(1000, 2500))).isEqualTo(" (2.50 to 1)");
  }

  @Test
  void waiting_otherNumbersOfRequests_areSaidAsTheyAre() {
    assertThat(StatusTable.waiting(new KernelReport.Waiting(0, 0, null, null, -1))).isNull();
    assertThat(StatusTable.waiting(null)).isNull();
    assertThat(StatusTable.waiting(new KernelReport.Waiting(1, 63, "getattr", null, 0)))
        .isEqualTo("1 request, for 1m 3s: getattr by the kernel");
    assertThat(StatusTable.waiting(new KernelReport.Waiting(1, 2, "readdir", "", 7)))
        .isEqualTo("1 request, for 2s: readdir of . by pid 7");
  }

  @Test
  void of_nodeOfACluster_saysWhoTheOthersAreAndWhatCameFromThem() {
    assertThat(StatusTable.of(SampleReport.inCluster("n1")).lines().map(String::strip))
        .contains(
            "reads        1,000 requests, 3.9 KiB, 75.0 % from tiers (2.9 KiB), 500 B just fetched,"
                + " 500 B from peers or the source, 0 errors")
        .containsSequence(
            "cluster      train: 2 nodes, owns 49.0 % of the files, replicas 1, remote copies auto",
            "contents     2.9 KiB from local tiers, 7.0 MiB from peers, 1.0 MiB from the source",
            "peers        90 answers, 10 misses, 90.0 % hits",
            "served       80 requests, 3.0 MiB, 3 (421: 2, slow: 1) refused, 4 failed, 5 active,"
                + " longest wait 6 ms",
            "node         n1 at 10.0.0.1:20113, 49.0 % of the files, this node",
            "node         n2 at 10.0.0.2:20113, 51.0 % of the files, 100 requests, 5.0 MiB, 3"
                + " failed, p50 0.4 ms, p99 12.5 ms, suspected: gets no requests for now");
  }

  private static OutputsReport outputs(long waiting, OutputsReport.@Nullable Away away) {
    return new OutputsReport(
        1 << 20, waiting, waiting, 60, 0, 0, 0, 8 << 20, 0, 0, List.of(), away);
  }

  private static String ofOutputs(OutputsReport outputs, List<MissingNode> missing) {
    return StatusTable.of(SampleReport.writable(outputs, missing));
  }

  @Test
  void of_writableMount_whoseOwnerIsAlone_doesNotSayThatAllIsAtTheSource() {
    MissingNode missing = new MissingNode("n3", "10.0.0.3", "2026-11-26T18:03:12Z", true);

    assertThat(ofOutputs(outputs(0, null), List.of())).contains("all is at the source");
    assertThat(ofOutputs(outputs(0, null), List.of(missing)))
        .contains(
            "writable (experimental): all known changes are at the source; those of missing nodes"
                + " are unknown",
            "nodes        2 of 3 expected nodes, missing: n3 since 2026-11-2",
            "missing      n3 at 10.0.0.3 since 2026-11-2");
  }

  @Test
  void of_writableMount_whoseNodeIsAway_saysWhatWaitsForIt() {
    String table =
        ofOutputs(
            outputs(
                3,
                new OutputsReport.Away("n3 (10.0.0.3)", false, "2026-11-26T18:03:12Z", "d/f", 3)),
            List.of());

    assertThat(table)
        .contains(
            "n3 (10.0.0.3), which has the data written there, has been unreachable since 2026-11-2")
        .contains(
            ": d/f and everything that depends on it wait; mount there again with the same"
                + " --state-dir and --tier, or remove or rewrite d/f")
        .doesNotContain("refused");
  }

  @Test
  void of_writableMount_whoseOwnerIsAway_doesNotShowOldFiguresAsThoseOfNow() {
    String table =
        ofOutputs(
            outputs(0, new OutputsReport.Away("n1", true, "2026-11-26T18:03:12Z", null, 0)),
            List.of());

    assertThat(table)
        .contains(
            "writable (experimental): n1, which owns all names, has been unreachable since"
                + " 2026-11-2",
            "so it is unknown what is not at the source yet",
            "was waiting")
        .doesNotContain("all is at the source", "refused");
  }

  @Test
  void of_largeCluster_showsSomeNodesAndThoseWithTrouble() {
    List<ClusterReport.MemberReport> more =
        IntStream.range(0, 500)
            .mapToObj(
                i ->
                    new ClusterReport.MemberReport(
                        "a" + i, "", "10.0.1.1", 20113, false, 0, false, 0, 0, 0, 0, 0))
            .toList();

    String table = StatusTable.of(SampleReport.inCluster("n1", more));

    assertThat(table.lines()).filteredOn(line -> line.startsWith("  node ")).hasSize(16);
    assertThat(table)
        .contains("n1 at 10.0.0.1", "n2 at 10.0.0.2", "and 486 more: --json lists all");
  }

  @Test
  void json_ofReport_hasThePromisedNames() {
    String json = new Gson().toJson(SampleReport.of("/m", "/s"));

    assertThat(json)
        .startsWith(
            "{\"mountpoint\":\"/m\",\"source\":\"/s\",\"user\":\"ada\",\"pid\":1,"
                + "\"uptimeSeconds\":3725,\"bridge\":\"jnr\",\"bridgeReason\":\"as"
                + " requested\",\"readMode\":\"page-cache\",\"readModeReason\":\"read-only\","
                + "\"logFile\":\"/var/log/pmfs/x.log\",\"stateDirectory\":\"/local/pmfs/state\","
                + "\"tiers\":[{\"name\":\"pm0\",\"kind\":\"pm\",\"path\":\"/mnt/pmem0/pmfs\","
                + "\"state\":\"full\",\"reason\":\"quota\",\"dax\":{\"real\":false,")
        .contains(
            "\"capacityBytes\":214748364800,\"usedBytes\":214748364800,\"copies\":1234567,"
                + "\"compression\":\"zstd:3\",\"contentBytes\":536870912000,\"hits\":600,\"misses\":400,\"readBytes\":3000,"
                + "\"evictions\":8,\"errors\":1,\"mismatches\":7,\"availableBytes\":0}",
            "\"reads\":{\"requests\":1000,\"bytes\":4000,\"fromTiers\":3000,\"fromSource\":500,"
                + "\"hitRatio\":0.75,\"errors\":0,\"fetched\":500,\"opensLeftToKernel\":0}",
            "\"staging\":{\"active\":1,\"queued\":2,\"dropped\":3,\"completed\":4,\"copiedAgain\":1,\"failed\":5,"
                + "\"verified\":6,\"mismatches\":7,\"evicted\":8,\"skippedNoRoom\":9,\"idle\":false}",
            "\"sourceOperations\":{\"opens\":1,\"reads\":2,\"bytes\":1048576,\"stats\":4,"
                + "\"lists\":5,\"readlinks\":6,\"xattrs\":7,\"statfs\":8,\"seeks\":9,\"total\":42}",
            "\"waiting\":{\"count\":3,\"longestSeconds\":12.9,\"operation\":\"read\","
                + "\"path\":\"part-000/x\",\"pid\":4711}");
  }
}
