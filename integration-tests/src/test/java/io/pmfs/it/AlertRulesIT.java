package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The alert rules of docs/prometheus, as Prometheus reads them and with invented metrics. */
@OnRequest(value = "package", what = "the alert rules, with Prometheus's promtool")
final class AlertRulesIT {
  private static final Path RULES = Path.of("../docs/prometheus/pmfs.rules.yml").toAbsolutePath();
  private static final String CASES = "pmfs.rules.test.yml";

  @TempDir private Path directory;

  @BeforeEach
  void copyCases() throws IOException {
    Machine.requireCommand("promtool");
    // The cases name the rules beside them.
    Files.copy(Path.of("src/test/resources/prometheus", CASES), directory.resolve(CASES));
  }

  private Command test(String rules) throws IOException {
    Files.writeString(directory.resolve("pmfs.rules.yml"), rules);
    return Command.run("promtool", "test", "rules", directory.resolve(CASES).toString());
  }

  @Test
  void rules_areValid() {
    Command.run("promtool", "check", "rules", "--lint-fatal", RULES.toString()).expect(0);
  }

  @Test
  void alerts_fireWhenTheyShould() throws IOException {
    test(Files.readString(RULES)).expect(0);
  }

  @Test
  void cases_noticeAnotherLimit() throws IOException {
    String rules = Files.readString(RULES);

    String others = rules.replace("members > 0", "members > 2");

    assertThat(others).isNotEqualTo(rules);
    assertThat(test(others).exit()).isEqualTo(1);
  }
}
