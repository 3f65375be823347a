package io.pmfs.daemon.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.report.TaskReport;
import java.lang.reflect.RecordComponent;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

final class WebPageTest {
  /** The script's names for parts of the status. */
  private static final Map<String, Class<?>> PARTS =
      Map.of(
          "s", StatusReport.class,
          "then", StatusReport.class,
          "t", StatusReport.TierReport.class,
          "g", StatusReport.Staging.class,
          "w", StatusReport.Waiting.class,
          "c", ClusterReport.class,
          "m", ClusterReport.MemberReport.class,
          "task", TaskReport.class);

  private static final Pattern USE = Pattern.compile("\\b([a-z]+)((?:\\??\\.[a-zA-Z0-9]+)+)");

  /** Names of the script itself; a list ends a path. */
  private static final Set<String> OWN = Set.of("at", "map", "find", "length");

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
        : Arrays.stream(part.getRecordComponents())
            .filter(component -> component.getName().equals(name))
            .findFirst()
            .<Class<?>>map(RecordComponent::getType)
            .orElse(Void.class);
  }
}
