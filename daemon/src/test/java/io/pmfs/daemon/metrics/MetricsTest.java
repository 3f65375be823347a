package io.pmfs.daemon.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.io.Resources;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.pmfs.daemon.dataset.FakeDataset;
import io.pmfs.posix.Await;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class MetricsTest {
  /** Metrics that depend on the JVM's garbage collector. */
  private static final String OF_SOME_JVMS = "jvm_gc_concurrent_phase_time_seconds.*";

  @TempDir private Path directory;
  private MeasuredDataset dataset;
  private Metrics metrics;

  @BeforeEach
  void open() throws Exception {
    dataset = new MeasuredDataset(directory);
    metrics = new Metrics("1.2.3", "5f4f736", () -> dataset.snapshot(true));
  }

  @AfterEach
  void close() {
    metrics.close();
    dataset.close();
  }

  private Exposition scrape() {
    return new Exposition(metrics.text());
  }

  @Test
  void text_afterReads_saysWhereTheyCameFrom() throws Exception {
    dataset.read(MeasuredDataset.SIZE);
    dataset.read(100);
    dataset.read(100);

    Exposition text = scrape();

    assertThat(text.value("pmfs_reads_total")).isEqualTo(3);
    assertThat(text.value("pmfs_read_bytes_total")).isEqualTo(5200);
    assertThat(text.value("pmfs_tier_hits_total", "tier=\"pm:/pm\"")).isEqualTo(2);
    assertThat(text.value("pmfs_tier_misses_total", "tier=\"pm:/pm\"")).isEqualTo(1);
    assertThat(text.value("pmfs_tier_misses_total", "tier=\"ssd:/ssd\"")).isEqualTo(1);
    assertThat(text.value("pmfs_tier_read_bytes_total", "tier=\"pm:/pm\"")).isEqualTo(200);
    assertThat(text.value("pmfs_tier_copies", "tier=\"pm:/pm\"")).isEqualTo(1);
    assertThat(text.value("pmfs_tier_up", "tier=\"ssd:/ssd\"")).isEqualTo(1);
    assertThat(text.value("pmfs_miss_bytes_total")).isEqualTo(5000);
    assertThat(text.value("pmfs_source_operations_total", "kind=\"read\"")).isEqualTo(1);
    assertThat(text.value("pmfs_source_read_bytes_total")).isEqualTo(5000);
    assertThat(text.value("pmfs_staging_completed_total")).isEqualTo(1);
  }

  /** Dashboards query these names, labels and values. */
  @Test
  void text_afterReads_hasWhatWasRecorded() throws Exception {
    dataset.read(MeasuredDataset.SIZE);
    dataset.read(100);

    assertThat(metrics.text().lines())
        .containsAll(
            Resources.readLines(Resources.getResource(FakeDataset.class, "metrics.txt"), UTF_8));
  }

  @Test
  void text_requests_isAHistogramInSeconds() {
    Exposition text = scrape();
    String name = "pmfs_request_duration_seconds";
    String read = "operation=\"read\"";

    assertThat(text.types()).containsEntry(name, "histogram");
    assertThat(text.value(name + "_count", read)).isEqualTo(4);
    assertThat(text.value(name + "_sum", read)).isEqualTo(0.012);
    assertThat(text.value(name + "_bucket", read, "le=\"+Inf\"")).isEqualTo(4);
    assertThat(text.value(name + "_bucket", read, "le=\"0.004194304\"")).isEqualTo(4);
    assertThat(text.value(name + "_bucket", read, "le=\"0.002097152\"")).isZero();
  }

  @Test
  void text_requestsThatWait_areGauges() {
    assertThat(scrape().value("pmfs_waiting_requests")).isEqualTo(3);
    assertThat(scrape().value("pmfs_waiting_longest_seconds")).isEqualTo(12.5);
  }

  @Test
  void text_labels_areEscaped() {
    assertThat(metrics.text())
        .contains("dataset=\"/lustre/\\\"quoted\\\"%0A\",mountpoint=\"/mnt/dataset\"")
        .doesNotContain("quoted\"\n");
  }

  @Test
  void text_withoutACluster_hasNothingOfOne() {
    try (Metrics alone = new Metrics("1.2.3", "5f4f736", () -> dataset.snapshot(false))) {
      assertThat(alone.text()).doesNotContain("pmfs_cluster", "pmfs_peer");
    }
    assertThat(scrape().value("pmfs_peer_hits_total")).isEqualTo(90);
    assertThat(scrape().value("pmfs_cluster_share_ratio")).isEqualTo(0.25);
  }

  @Test
  void names_areOfPrometheusConvention() {
    scrape()
        .types()
        .forEach(
            (name, type) -> {
              if (name.startsWith("pmfs_")) {
                assertThat(name).matches("pmfs_[a-z_]+");
                assertThat(name.endsWith("_total")).as(name).isEqualTo(type.equals("counter"));
              }
            });
  }

  /** These metrics exist only after a garbage collection, which the JVM reports with a delay. */
  private void awaitCollection() {
    System.gc();
    Await.until(
        "the collection is reported", () -> metrics.text().contains("jvm_gc_pause_seconds_count"));
  }

  /** A row: {@code | `pmfs_reads_total` | counter | labels | meaning |}. */
  private static final Pattern ROW = Pattern.compile("(?m)^\\| (`\\w+` \\| \\w+ \\|.*) \\|$");

  @Test
  void document_hasEveryMetricAndNoOther() throws Exception {
    awaitCollection();
    List<String> documented =
        ROW.matcher(Exposition.document("docs/metrics.md"))
            .results()
            .map(row -> comparable(row.group(1).replace("`", "")))
            .toList();
    List<String> existing =
        scrape().rows().stream()
            .filter(row -> !row.matches(OF_SOME_JVMS))
            .map(MetricsTest::comparable)
            .toList();

    assertThat(documented).containsExactlyInAnyOrderElementsOf(existing);
  }

  /** The document describes the metrics of the JVM in its own words. */
  private static String comparable(String row) {
    return row.startsWith("pmfs_") ? row : row.substring(0, row.lastIndexOf(" | "));
  }

  @Test
  void dashboard_queriesOnlyWhatExists() throws Exception {
    JsonObject dashboard =
        JsonParser.parseString(Exposition.document("docs/grafana/pmfs.json")).getAsJsonObject();
    List<String> queries = new ArrayList<>();
    collect(dashboard, queries);
    Map<String, String> existing = scrape().types();
    TreeSet<String> asked = new TreeSet<>();
    for (String query : queries) {
      Matcher name = Pattern.compile("\\b(?:pmfs|jvm|process|system)_\\w+").matcher(query);
      while (name.find()) {
        String metric = name.group();
        String base = metric.replaceFirst("_(bucket|count|sum)$", "");
        boolean isPart = "histogram".equals(existing.get(base));
        asked.add(isPart ? base : metric);
      }
    }

    assertThat(queries).hasSizeGreaterThan(10);
    assertThat(existing.keySet()).containsAll(asked);
    assertThat(asked).contains("pmfs_request_duration_seconds", "pmfs_tier_hits_total");
  }

  private static void collect(JsonElement element, List<String> queries) {
    if (element instanceof JsonArray array) {
      array.forEach(e -> collect(e, queries));
    } else if (element instanceof JsonObject object) {
      for (Map.Entry<String, JsonElement> field : object.entrySet()) {
        boolean isQuery = field.getKey().equals("expr") || field.getKey().equals("query");
        if (isQuery && field.getValue().isJsonPrimitive()) {
          queries.add(field.getValue().getAsString());
        } else {
          collect(field.getValue(), queries);
        }
      }
    }
  }
}
