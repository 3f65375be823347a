package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Power cuts while copies are being made on persistent memory; {@code scripts/power-cuts}. */
final class PowerCutIT {
  /** Exit status of the script where it cannot run. */
  private static final int SKIPPED = 77;

  @ParameterizedTest
  @EnabledIfSystemProperty(
      named = "pmfs.vm",
      matches = "all",
      disabledReason = "power cuts of virtual machines; -Dpmfs.vm=all runs it")
  @ValueSource(strings = {"pm:/pmem/tier", "pm:/pmem/x.pool:300M", "pm:/dev/dax0.0"})
  void powerCut_whileStaging_losesNothingSyncedAndLeavesNothingWrong(String tier) {
    String script = Installation.launcherOfCheckout().resolveSibling("power-cuts").toString();
    Command cuts =
        Command.run(Map.of(), Duration.ofMinutes(30), List.of(script, "--tier", tier, "1"));
    assumeTrue(cuts.exit() != SKIPPED, () -> cuts.err().strip());
    assertThat(cuts.exit()).as("%s\n%s", cuts.out(), cuts.err()).isZero();
  }
}
