package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.machine.ExitStatus;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The tables of exit statuses in the manual. */
final class ExitStatusesTest {
  @ParameterizedTest
  @CsvSource({"docs/usage.md, status, false", "docs/slurm.md, status of `pmfs run`, true"})
  void page_hasTheMeanings(String page, String column, boolean ofRun) {
    List<String> written =
        Repository.page(page).rows().stream()
            .filter(row -> row.head().equals(List.of(column, "meaning")))
            .map(row -> row.cell(column) + ": " + row.cell("meaning").replace("`", ""))
            .toList();

    assertThat(written)
        .isEqualTo(
            (ofRun ? ExitStatus.MEANINGS_OF_RUN : ExitStatus.MEANINGS)
                .stream().map(m -> m.status() + ": " + m.text()).toList());
  }
}
