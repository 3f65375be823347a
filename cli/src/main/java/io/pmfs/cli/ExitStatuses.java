package io.pmfs.cli;

import io.pmfs.machine.ExitStatus;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import picocli.CommandLine;
import picocli.CommandLine.Model.UsageMessageSpec;

/** The exit statuses in the help of commands. */
final class ExitStatuses {
  static final String HEADING = "%nExit status:%n";

  private ExitStatuses() {}

  static void addTo(CommandLine commands) {
    add(commands, ExitStatus.MEANINGS, ExitStatus.Meaning::summary);
    CommandLine run = commands.getSubcommands().get("run");
    if (run != null) {
      add(run, ExitStatus.MEANINGS_OF_RUN, ExitStatus.Meaning::text);
    }
  }

  private static void add(
      CommandLine command,
      List<ExitStatus.Meaning> meanings,
      Function<ExitStatus.Meaning, String> text) {
    Map<String, String> list = new LinkedHashMap<>();
    meanings.forEach(meaning -> list.put(meaning.status(), text.apply(meaning)));
    UsageMessageSpec usage = command.getCommandSpec().usageMessage();
    usage.exitCodeListHeading(HEADING).exitCodeList(list);
  }
}
