package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Checks that the program has the messages that docs/troubleshooting.md explains. */
final class TroubleshootingTest {
  private static final Pattern LITERAL = Pattern.compile("\"((?:[^\"\\\\\\n]|\\\\.)*)\"");
  private static final Pattern JOINED = Pattern.compile("\"\\s*\\+\\s*\"");
  private static final Pattern CODE = Pattern.compile("`([^`]+)`.*");

  /** What separates the parts of a message: values and punctuation. */
  private static final Pattern SEAM =
      Pattern.compile("\\b[A-Z]{3,}\\b|%[a-z]|\\$[\\w{}#@\\[\\]]+|\\bN\\b|: |; |[(),']");

  private static final int TELLING = 10;

  private final List<String> literals = new ArrayList<>();
  private final MarkdownPage page = Repository.page("docs/troubleshooting.md");

  @BeforeEach
  void readSources() {
    for (Path file : Repository.javaFiles(false)) {
      String text = JOINED.matcher(Repository.text(file)).replaceAll("");
      LITERAL.matcher(text).results().forEach(match -> add(match.group(1)));
    }
    Repository.scripts().forEach(script -> Repository.text(script).lines().forEach(this::add));
  }

  private void add(String text) {
    literals.add(text.replace("\\\"", "\"").replace("\\n", "\n"));
  }

  @Test
  void messages_onThePage_areOfTheProgram() {
    List<String> unknown = new ArrayList<>();
    int messages = 0;
    for (MarkdownPage.Row row : page.rows()) {
      if (!row.head().contains("message")) {
        continue;
      }
      messages++;
      var code = CODE.matcher(row.cell("message"));
      String missing = code.matches() ? missingOf(code.group(1)) : "no message";
      if (missing != null) {
        unknown.add(page.at(row.line()) + ": '" + missing + "'");
      }
    }
    assertThat(unknown).isEmpty();
    assertThat(messages).isGreaterThan(60);
  }

  @Test
  void rows_haveARemedy() {
    for (MarkdownPage.Row row : page.rows()) {
      assertThat(row.cells()).as(page.at(row.line())).hasSize(3);
      assertThat(row.cell("remedy")).as(page.at(row.line())).isNotEmpty();
    }
  }

  @Test
  void missing_ofAMessageThatIsNone_isTold() {
    assertThat(missingOf("MOUNTPOINT: still mounted; there may be another mount below it"))
        .isNull();
    assertThat(missingOf("MOUNTPOINT: still mounted; there may be a cat below it")).isNotNull();
    assertThat(missingOf("MOUNTPOINT")).isNotNull();
  }

  /** The first part of a message that no literal of the program contains; null if all do. */
  private @Nullable String missingOf(String message) {
    List<String> parts =
        Arrays.stream(SEAM.split(message))
            .map(String::strip)
            .filter(part -> part.length() > 2)
            .toList();
    if (parts.stream().noneMatch(part -> part.length() >= TELLING)) {
      return message + ": too short to be known again";
    }
    return parts.stream()
        .filter(part -> literals.stream().noneMatch(literal -> literal.contains(part)))
        .findFirst()
        .orElse(null);
  }
}
