package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.settings.ConfigurationFile;
import io.pmfs.settings.MountOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

final class ConfigurationReferenceTest {
  /** A variable in scripts or in Java. */
  private static final Pattern IN_SCRIPT =
      Pattern.compile("(?:\\$\\{?|\\b)(PMFS_[A-Z]+(?:_[A-Z]+)*)\\b(?!\\*)");

  private static final Pattern IN_JAVA = Pattern.compile("\"(PMFS_[A-Z]+(?:_[A-Z]+)*)\"");
  private static final Pattern IN_PAGE = Pattern.compile("`(PMFS_[A-Z]+(?:_[A-Z]+)*)`");

  private final MarkdownPage page = Repository.page(ConfigurationReference.PAGE);

  @Test
  void page_hasTheOptionsOfTheProgram() throws Exception {
    if (Boolean.getBoolean("pmfs.write")) {
      ConfigurationReference.write();
    } else {
      assertThat(page.text())
          .as("the options changed: " + ConfigurationReference.COMMAND)
          .isEqualTo(ConfigurationReference.pageOf(page.text()));
    }
  }

  @Test
  void page_saysHowToWriteItAnew() {
    assertThat(page.text()).contains(ConfigurationReference.COMMAND);
  }

  @Test
  void variables_ofScriptsAndProgram_areInTheManual() {
    String manual =
        Repository.pages().stream()
            .filter(each -> !each.path().toString().contains("/decisions/"))
            .map(MarkdownPage::text)
            .collect(Collectors.joining("\n"));

    assertThat(used())
        .filteredOn(name -> !Pattern.compile("\\b" + name + "\\b").matcher(manual).find())
        .as("variables that no page names; " + ConfigurationReference.PAGE + " is the place")
        .isEmpty();
  }

  @Test
  void variables_onThePage_areUsed() {
    Set<String> known = used();
    MountOption.options().forEach(option -> known.add(option.variable()));

    assertThat(known).containsAll(documented());
  }

  /** Otherwise pmfs would ignore a wrong word in the file, or fail at the next start. */
  @Test
  void files_inAllPages_areUnderstood() throws Exception {
    List<MarkdownPage.Code> files = new ArrayList<>();
    for (MarkdownPage each : Repository.pages()) {
      for (MarkdownPage.Code code : each.code()) {
        if (code.language().equals("toml")) {
          files.add(code);
          ConfigurationFile.parse(each.path(), code.text());
        }
      }
    }
    assertThat(files).hasSizeGreaterThanOrEqualTo(2);
  }

  private Set<String> documented() {
    return IN_PAGE
        .matcher(page.text())
        .results()
        .map(match -> match.group(1))
        .collect(Collectors.toCollection(TreeSet::new));
  }

  private static Set<String> used() {
    return Stream.concat(
            Repository.scripts().stream().flatMap(file -> names(IN_SCRIPT, file)),
            Repository.javaFiles(false).stream().flatMap(file -> names(IN_JAVA, file)))
        .collect(Collectors.toCollection(TreeSet::new));
  }

  private static Stream<String> names(Pattern pattern, Path file) {
    return pattern.matcher(Repository.text(file)).results().map((MatchResult m) -> m.group(1));
  }
}
