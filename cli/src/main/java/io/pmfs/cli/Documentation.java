package io.pmfs.cli;

import io.pmfs.settings.ConfigurationExample;
import picocli.CommandLine;

/** Texts for packages: the help of all commands and a configuration file to edit. */
public final class Documentation {
  private Documentation() {}

  /** All commands with their options, for documentation only. */
  public static CommandLine commands() throws Exception {
    return PmfsCommand.commands(Main.invocation());
  }

  /** A configuration file with every key, commented out. */
  public static String configuration() {
    return ConfigurationExample.text();
  }
}
