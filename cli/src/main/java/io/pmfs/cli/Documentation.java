package io.pmfs.cli;

import io.pmfs.settings.ConfigurationExample;
import picocli.CommandLine;

/** What packages contain besides the program: its commands' help and a configuration to edit. */
public final class Documentation {
  private Documentation() {}

  /** All commands with their options; for reading, not for running. */
  public static CommandLine commands() throws Exception {
    return PmfsCommand.commands(Main.invocation());
  }

  /** A configuration file with every key, commented out. */
  public static String configuration() {
    return ConfigurationExample.text();
  }
}
