package io.pmfs.daemon.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.DatasetReport;
import io.pmfs.daemon.report.KernelReport;
import io.pmfs.daemon.report.MissingNode;
import io.pmfs.daemon.report.StatusJson;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.daemon.report.TierReport;
import java.lang.reflect.RecordComponent;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class WebPageTest {
  /** The script's names for parts of the status. */
  private static final Map<String, Class<?>> PARTS =
      Map.ofEntries(
          Map.entry("p", PageReport.class),
          Map.entry("page", PageReport.class),
          Map.entry("before", PageReport.class),
          Map.entry("s", StatusReport.class),
          Map.entry("then", StatusReport.class),
          Map.entry("reads", DatasetReport.Reads.class),
          Map.entry("t", TierReport.class),
          Map.entry("g", DatasetReport.Staging.class),
          Map.entry("w", KernelReport.Waiting.class),
          Map.entry("c", ClusterReport.class),
          Map.entry("m", ClusterReport.MemberReport.class),
          Map.entry("gone", MissingNode.class),
          Map.entry("task", TaskReport.class));

  private static final Pattern USE = Pattern.compile("\\b([a-z]+)((?:\\??\\.[a-zA-Z0-9]+)+)");

  /** The script's own names; a list ends a path. */
  private static final Set<String> OWN = Set.of("map", "find", "length", "slice");

  @Test
  void script_showsOnlyFiguresOfTheStatus() throws Exception {
    String page = WebPage.content().body().call();
    String script = page.substring(page.indexOf("// The present values"));
    List<MatchResult> uses =
        USE.matcher(script).results().filter(use -> PARTS.containsKey(use.group(1))).toList();

    assertThat(uses).hasSizeGreaterThan(60);
    assertThat(uses.stream().filter(use -> !isKnown(use)).map(MatchResult::group)).isEmpty();
  }

  private static boolean isKnown(MatchResult use) {
    Class<?> type = Objects.requireNonNull(PARTS.get(use.group(1)));
    for (String name : use.group(2).replace("?", "").substring(1).split("\\.", -1)) {
      if (OWN.contains(name)) {
        return true;
      }
      type = typeOf(name, type);
    }
    return type != Void.class;
  }

  /** The type of a figure; Void if there is none. */
  private static Class<?> typeOf(String name, Class<?> part) {
    return !part.isRecord()
        ? Void.class
        : (part == StatusReport.class
                ? StatusJson.fields().stream()
                : Arrays.stream(part.getRecordComponents()))
            .filter(component -> component.getName().equals(name))
            .findFirst()
            .<Class<?>>map(RecordComponent::getType)
            .orElse(Void.class);
  }

  /** WCAG 2.1: 4.5 for text, 3 for the parts of a figure. */
  @ParameterizedTest
  @CsvSource({
    "ink, page, 4.5",
    "ink, card, 4.5",
    "ink, track, 4.5",
    "soft, page, 4.5",
    "soft, card, 4.5",
    "soft, track, 4.5",
    "good, good-bg, 4.5",
    "wait, wait-bg, 4.5",
    "bad, bad-bg, 4.5",
    "wait, card, 4.5",
    "bad, card, 4.5",
    "tier0, card, 3",
    "tier1, card, 3",
    "tier2, card, 3",
    "tier3, card, 3",
    "fetched, card, 3",
    "source, card, 3"
  })
  void colours_inBothSchemes_haveContrast(String one, String other, double least) throws Exception {
    String page = WebPage.content().body().call();
    int dark = page.indexOf("prefers-color-scheme: dark");
    for (String scheme : List.of(page.substring(0, dark), page.substring(dark))) {
      assertThat(contrast(luminance(colour(one, scheme)), luminance(colour(other, scheme))))
          .isGreaterThanOrEqualTo(least);
    }
  }

  private static int colour(String name, String style) {
    Matcher value = Pattern.compile("--" + name + ": #([0-9a-f]{6});").matcher(style);
    assertThat(value.find()).as(name).isTrue();
    return Integer.parseInt(value.group(1), 16);
  }

  private static double contrast(double one, double other) {
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  }

  private static double luminance(int colour) {
    return 0.2126 * linear(colour >> 16 & 255)
        + 0.7152 * linear(colour >> 8 & 255)
        + 0.0722 * linear(colour & 255);
  }

  private static double linear(int part) {
    double share = part / 255.0;
    return share <= 0.04045 ? share / 12.92 : Math.pow((share + 0.055) / 1.055, 2.4);
  }
}
