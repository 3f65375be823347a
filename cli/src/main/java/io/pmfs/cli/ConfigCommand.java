package io.pmfs.cli;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import io.pmfs.cli.mount.MountOptions;
import io.pmfs.daemon.Invocation;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.places.Surroundings;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.ConfigurationExample;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code pmfs config}: the resolved configuration, each value with its origin. */
@Command(
    name = "config",
    description = {
      "Shows the configuration that a mount would have, and where each value comes from.",
      "%nEach value comes from the first of these that has it: the command line, the environment"
          + " (PMFS_<OPTION>), the file's section for the mount point, the file's other keys, the"
          + " defaults. The file is the first of --config, $PMFS_CONFIG,"
          + " $XDG_CONFIG_HOME/pmfs/pmfs.toml (else ~/.config/pmfs/pmfs.toml), /etc/pmfs/pmfs.toml."
          + " For example:%n",
      "  keep-free = \"20G\"",
      "  [mount.\"/mnt/dataset\"]",
      "  source = \"/lustre/imagenet\"",
      "  tier = [\"pm:/mnt/pmem0/pmfs:200G\", \"ssd:/local/pmfs:80%%\"]%n"
    },
    sortOptions = false,
    customSynopsis = "pmfs config [OPTION]... [MOUNTPOINT]",
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs config",
      "  pmfs config /mnt/dataset",
      "  pmfs config /mnt/dataset --keep-free 20G --json",
      "  pmfs config --example >~/.config/pmfs/pmfs.toml"
    })
final class ConfigCommand implements Callable<Integer> {
  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().serializeNulls().create();

  private final Invocation invocation;

  @Spec private CommandSpec spec;

  @Parameters(
      arity = "0..1",
      paramLabel = "MOUNTPOINT",
      description = "Include the configuration file's section for this mount point.")
  private @Nullable String mountpoint;

  @Option(names = "--json", description = "Print one JSON object.")
  private boolean json;

  @Option(names = "--config", paramLabel = "FILE", description = "Configuration file.")
  private @Nullable String config;

  @Option(
      names = "--example",
      description = "Print a configuration file with every key, commented out.")
  private boolean example;

  ConfigCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    if (example) {
      invocation.out().print(ConfigurationExample.text());
      return ExitStatus.DONE;
    }
    Surroundings surroundings = invocation.surroundings();
    Configuration.suspectVariables(surroundings).forEach(invocation::warn);
    Configuration configuration =
        Configuration.resolve(
            new Configuration.Request(
                MountOptions.given(spec.commandLine().getParseResult()), config, null, mountpoint),
            surroundings);
    configuration.validate(surroundings);
    if (json) {
      invocation.showJson(GSON.toJson(configuration.toJson()));
    } else {
      invocation.show(toText(configuration));
    }
    return ExitStatus.DONE;
  }

  private static String toText(Configuration configuration) {
    StringBuilder text = new StringBuilder();
    configuration
        .settings()
        .forEach(
            (option, setting) -> {
              String value = String.join(" ", setting.values());
              text.append(
                  String.format(
                      Locale.ROOT,
                      "%-16s = %-24s  (from %s)%n",
                      option.key(),
                      value,
                      setting.origin()));
            });
    return text.toString().stripTrailing();
  }
}
