package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.yaml.snakeyaml.Yaml;

/** The rules of docs/prometheus match docs/metrics.md. AlertRulesIT tries them with promtool. */
final class AlertRulesTest {
  private static final Path RULES = Repository.ROOT.resolve("docs/prometheus/pmfs.rules.yml");
  private static final Path CASES =
      Repository.ROOT.resolve(
          "integration-tests/src/test/resources/prometheus/pmfs.rules.test.yml");
  private static final Pattern METRIC = Pattern.compile("pmfs_\\w+");

  private final List<JsonObject> rules =
      all(parse(RULES), "groups").flatMap(group -> all(group, "rules")).toList();
  private final List<MarkdownPage.Row> rows = Repository.page("docs/metrics.md").rows();

  /** MetricsTest compares the page with what the daemon answers. */
  @Test
  void rules_askForMetricsThatExist() {
    List<String> existing = rows.stream().map(row -> row.cell("metric").replace("`", "")).toList();

    for (JsonObject rule : rules) {
      String query = text(rule, "expr");
      List<String> metrics = METRIC.matcher(query).results().map(MatchResult::group).toList();
      assertThat(existing).as(query).containsAll(metrics);
      assertThat(!metrics.isEmpty() || query.equals("up{job=\"pmfs\"} == 0")).as(query).isTrue();
    }
  }

  @Test
  void alerts_areThoseOfThePage() {
    assertThat(
            rows.stream()
                .filter(row -> !row.cell("alert").isEmpty())
                .map(row -> row.cell("alert").replace("`", "") + " " + row.cell("severity")))
        .containsExactlyElementsOf(
            rules.stream()
                .map(
                    rule ->
                        text(rule, "alert")
                            + " "
                            + text(rule.getAsJsonObject("labels"), "severity"))
                .toList());
  }

  @Test
  void alerts_eachHaveACaseInWhichTheyFireAndOneInWhichTheyDoNot() {
    List<JsonObject> cases =
        all(parse(CASES), "tests").flatMap(test -> all(test, "alert_rule_test")).toList();

    for (JsonObject rule : rules) {
      assertThat(
              cases.stream()
                  .filter(given -> text(given, "alertname").equals(text(rule, "alert")))
                  .map(given -> given.has("exp_alerts")))
          .as(text(rule, "alert"))
          .contains(true, false);
    }
  }

  private static JsonObject parse(Path file) {
    return new Gson().toJsonTree(new Yaml().load(Repository.text(file))).getAsJsonObject();
  }

  private static Stream<JsonObject> all(JsonObject in, String list) {
    return StreamSupport.stream(in.getAsJsonArray(list).spliterator(), false)
        .map(JsonElement::getAsJsonObject);
  }

  private static String text(JsonObject in, String name) {
    return in.get(name).getAsString();
  }
}
