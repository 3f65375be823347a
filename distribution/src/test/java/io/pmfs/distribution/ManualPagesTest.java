package io.pmfs.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cli.Documentation;
import io.pmfs.machine.ExitStatus;
import io.pmfs.settings.MountOption;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import picocli.CommandLine;

/** The manual pages as groff shows them. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class ManualPagesTest {
  /** The synopsis of a help that is wide enough for it. */
  private static final Pattern USAGE = Pattern.compile("\\AUsage: (.*)\\n");

  private final Map<String, String> pages = new TreeMap<>();
  private CommandLine root;

  @BeforeAll
  void render() throws Exception {
    Program.require("groff");
    root = Documentation.commands();
    Map<String, String> sources =
        new ManualPages(root, Repository.helper(), Repository.configuration())
            .write("2026-11-24", "pmfs 1.2.3");
    for (Map.Entry<String, String> page : sources.entrySet()) {
      // Warnings are in the output: the next test looks for them. -P-cbou leaves out bold and
      // italic.
      pages.put(
          page.getKey(),
          Program.run(page.getValue(), "groff", "-k", "-man", "-Tutf8", "-ww", "-P-cbou"));
    }
  }

  @Test
  void pages_rendered_haveNoWarnings() {
    assertThat(pages).containsKeys("pmfs.1", "pmfs-run.1", "pmfs-cache.1", "mount.pmfs.8");
    pages.forEach(
        (name, text) -> assertThat(text).as(name).doesNotContain("<standard input>", "troff:"));
  }

  @Test
  void synopsis_ofEachCommand_isThatOfItsHelp() {
    for (CommandLine command : ManualPage.commandsOf(root)) {
      command.getCommandSpec().usageMessage().width(10_000);
      Matcher usage = USAGE.matcher(command.getUsageMessage());
      assertThat(usage.find()).isTrue();
      String name = ManualPage.nameOf(command) + ".1";

      assertThat(oneLine(section(name, "SYNOPSIS"))).as(name).isEqualTo(oneLine(usage.group(1)));
    }
  }

  @Test
  void pages_ofCommands_haveAllOptionsOfTheirHelp() {
    for (CommandLine command : ManualPage.commandsOf(root)) {
      String text = section(ManualPage.nameOf(command) + ".1", "OPTIONS");

      command.getCommandSpec().options().stream()
          .filter(option -> !option.negatable())
          .forEach(option -> assertThat(text).contains(option.names()));
    }
  }

  @Test
  void pages_all_haveTheCommonSections() {
    List<Variable> variables = Variable.onPage(Repository.configuration());
    assertThat(variables).extracting(Variable::name).contains("PMFS_HEAP", "PMFS_MOUNT");
    for (String name : pages.keySet()) {
      assertThat(section(name, "ENVIRONMENT"))
          .contains(MountOption.options().stream().map(MountOption::variable).toList())
          .contains(variables.stream().map(Variable::name).toList());
      assertThat(section(name, "FILES"))
          .contains("/etc/pmfs/pmfs.toml", "/run/pmfs", "/var/tmp/pmfs-$USER", "/var/log/pmfs");
      for (String other : pages.keySet()) {
        String reference = other.replaceAll("\\.(\\d)$", "($1)");
        boolean isNamed = List.of(section(name, "SEE ALSO").split("[,\\s]+")).contains(reference);
        assertThat(isNamed).as(name + ": " + reference).isEqualTo(!other.equals(name));
      }
    }
  }

  @Test
  void files_areThoseOfTheManual() {
    String manual = Repository.configuration();
    Matcher paths =
        Pattern.compile("[$~/][\\w$~/.-]*/[\\w$./-]+").matcher(section("pmfs.1", "FILES"));
    assertThat(paths.results().map(found -> found.group().replaceAll("[.,]+$", "")))
        .hasSizeGreaterThan(8)
        .allMatch(manual::contains);
  }

  @Test
  void exitStatus_ofEachPage_namesAll() {
    for (String name : pages.keySet()) {
      String text = oneLine(section(name, "EXIT STATUS"));
      if (name.equals("pmfs-run.1")) {
        ExitStatus.MEANINGS_OF_RUN.forEach(
            each -> assertThat(text).contains(each.status() + " " + each.text()));
      } else if (name.equals("pmfs-pack.1")) {
        assertThat(text).contains("1 not complete: run it again", "3 not mounted; ");
      } else if (name.endsWith(".1")) {
        ExitStatus.MEANINGS.forEach(
            each -> assertThat(text).as(name).contains(each.status() + " " + each.text()));
      }
    }
  }

  private String section(String page, String heading) {
    Matcher section =
        Pattern.compile("^" + heading + "\\n((?: .*\\n|\\n)*)", Pattern.MULTILINE)
            .matcher(String.valueOf(pages.get(page)));
    assertThat(section.find()).as(page + ": " + heading).isTrue();
    return String.valueOf(section.group(1));
  }

  private static String oneLine(String text) {
    return text.strip().replaceAll("\\s+", " ");
  }
}
