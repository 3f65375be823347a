package io.pmfs.cli;

import io.pmfs.cli.mount.MountOptions;
import io.pmfs.settings.ConfigurationExample;
import java.util.List;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** Texts for packages: the help of all commands and a configuration file to edit. */
public final class Documentation {
  private Documentation() {}

  /** All commands with their options, for documentation only. */
  public static CommandLine commands() throws Exception {
    return PmfsCommand.commands(Main.invocation());
  }

  /** The options of a command by heading, as in its help; its own first, below an empty heading. */
  public static Map<String, List<OptionSpec>> optionsByHeading(CommandSpec command) {
    return MountOptions.byHeading(command);
  }

  /** A configuration file with every key, commented out. */
  public static String configuration() {
    return ConfigurationExample.text();
  }
}
