package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.settings.MountOption;
import java.io.IOException;
import java.nio.file.Files;

/** The table of options in docs/configuration.md, generated from {@link MountOption}. */
final class ConfigurationReference {
  static final String PAGE = "docs/configuration.md";
  static final String COMMAND =
      "mvn -o -q -pl cli -am test -Dtest=ConfigurationReferenceTest"
          + " -Dsurefire.failIfNoSpecifiedTests=false -Dpmfs.write=true";

  private static final String BEGIN = "<!-- the options, written by ConfigurationReference -->\n";
  private static final String END = "<!-- end of the options -->\n";

  private ConfigurationReference() {}

  /** Replaces the table in a page. */
  static String pageOf(String page) {
    int begin = page.indexOf(BEGIN) + BEGIN.length();
    int end = page.indexOf(END);
    if (begin < BEGIN.length() || end < begin) {
      throw new IllegalStateException(PAGE + ": lacks " + BEGIN + END);
    }
    return page.substring(0, begin) + table() + page.substring(end);
  }

  static void write() throws IOException {
    String page = Repository.page(PAGE).text();
    Files.writeString(Repository.ROOT.resolve(PAGE), pageOf(page), UTF_8);
  }

  static String table() {
    StringBuilder table =
        new StringBuilder(
            """
            | command line | environment | key in the file | default | meaning |
            |---|---|---|---|---|
            """);
    for (MountOption<?> option : MountOption.values()) {
      table
          .append("| ")
          .append(
              String.join(
                  " | ",
                  commandLine(option),
                  option.kind() == MountOption.Kind.ARGUMENT ? "-" : code(option.variable()),
                  option.isForFiles() ? code(option.key()) : "-",
                  option.defaultText() == null ? "-" : code(option.defaultText()),
                  option.description()))
          .append(" |\n");
    }
    return table.toString();
  }

  private static String commandLine(MountOption<?> option) {
    return switch (option.kind()) {
      case ARGUMENT -> code(option.placeholder());
      case FLAG -> code(option.commandLineName());
      case VALUE -> code(option.commandLineName() + " " + option.placeholder());
      case LIST -> code(option.commandLineName() + " " + option.placeholder()) + "...";
    };
  }

  private static String code(String text) {
    return "`" + text.replace("|", "\\|") + "`";
  }
}
