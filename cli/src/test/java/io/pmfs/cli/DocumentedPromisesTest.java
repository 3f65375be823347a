package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Checks that each promise of docs/semantics.md and docs/security.md names existing tests. */
final class DocumentedPromisesTest {
  private static final String COLUMN = "checked by";
  private static final Pattern SPAN = Pattern.compile("`([^`]+)`");
  private static final Pattern CLASS = Pattern.compile("[A-Z]\\w*(?:IT|Tests?)");
  private static final Pattern METHOD = Pattern.compile("[a-z]\\w*\\*?");
  private static final Pattern NUMBER = Pattern.compile("\\d+\\.\\d+");
  private static final Pattern DEFAULT_CLASS =
      Pattern.compile("Tests are `(\\w+)` of `\\w+` unless.*");
  private static final Pattern SUPERCLASS = Pattern.compile("class \\w+[^{]*? extends (\\w+)");
  private static final List<String> POSIX =
      List.of("PosixDataTests", "PosixNameTests", "PosixAttributeTests");

  /** Those whose tests take minutes or a larger machine. All others have one in the short run. */
  private static final List<String> ONLY_ON_REQUEST =
      List.of(
          "5.28",
          "many small copies, until memory ends",
          "more files than memory",
          "hand out wrong content with the right checksum, for files that it owns or says it holds");

  private static final Pattern CLASS_ON_REQUEST = Pattern.compile("(?m)^@OnRequest");

  private final MarkdownPage page = Repository.page("docs/semantics.md");
  private final MarkdownPage threats = Repository.page("docs/security.md");
  private final Map<String, String> sources = new HashMap<>();

  @BeforeEach
  void readTests() {
    for (Path file : Repository.javaFiles(true)) {
      sources.put(String.valueOf(file.getFileName()).replace(".java", ""), Repository.text(file));
    }
  }

  @Test
  void sentences_nameTestsThatAreThere() {
    List<String> wrong = new ArrayList<>();
    for (MarkdownPage.Row row : promises(page)) {
      add(wrong, page.at(row.line()), problemOf(row.cell(COLUMN), defaultClass(row.line())));
    }
    assertThat(wrong).isEmpty();
  }

  @Test
  void threats_nameTestsThatAreThere() {
    List<String> wrong = new ArrayList<>();
    for (MarkdownPage.Row row : promises(threats)) {
      add(wrong, threats.at(row.line()), problemOf(row.cell(COLUMN), ""));
    }
    assertThat(wrong).isEmpty();
    assertThat(promises(threats)).hasSizeGreaterThan(25);
  }

  @Test
  void sentencesAndThreats_haveATestInTheShortRun() {
    List<String> leftOut = new ArrayList<>();
    for (MarkdownPage.Row row : promises(page)) {
      if (isLeftOut(row.cell(COLUMN), defaultClass(row.line()))) {
        leftOut.add(row.cells().get(0));
      }
    }
    for (MarkdownPage.Row row : promises(threats)) {
      if (isLeftOut(row.cell(COLUMN), "")) {
        leftOut.add(row.cells().get(0));
      }
    }
    assertThat(leftOut).containsExactlyElementsOf(ONLY_ON_REQUEST);
  }

  private static void add(List<String> wrong, String place, @Nullable String problem) {
    if (problem != null) {
      wrong.add(place + ": " + problem);
    }
  }

  @Test
  void sentences_haveANumberOfTheirOwn() {
    Set<String> numbers = new HashSet<>();
    for (MarkdownPage.Row row : promises(page)) {
      String number = row.cells().get(0);
      assertThat(number).as(page.at(row.line())).matches(NUMBER);
      assertThat(numbers.add(number)).as(page.at(row.line()) + ": twice: " + number).isTrue();
    }
    assertThat(numbers).hasSizeGreaterThan(80);
  }

  @Test
  void problem_ofWhatIsNotThere_isTold() {
    assertThat(problemOf("`SemanticsIT#source_*`, `#tier_isPrivate`", "")).isNull();
    assertThat(problemOf("posix `names_*`", "")).isNull();
    assertThat(problemOf("`SemanticsIT#nothing_*`", "")).contains("nothing_*");
    assertThat(problemOf("`NothingIT`", "")).contains("NothingIT");
    assertThat(problemOf("`scripts/nothing`", "")).contains("scripts/nothing");
    assertThat(problemOf("by looking at it", "")).contains("no test");
  }

  private static List<MarkdownPage.Row> promises(MarkdownPage page) {
    return page.rows().stream().filter(row -> row.head().contains(COLUMN)).toList();
  }

  /** The test class in the section's introduction, for rows without one; empty if there is none. */
  private String defaultClass(int line) {
    for (int i = line - 1; i >= 0 && !page.lines().get(i).startsWith("## "); i--) {
      Matcher sentence = DEFAULT_CLASS.matcher(page.lines().get(i));
      if (sentence.matches()) {
        return sentence.group(1);
      }
    }
    return "";
  }

  /** The class or test of a cell that does not exist, or null. */
  private @Nullable String problemOf(String cell, String defaultClass) {
    String current = defaultClass;
    int tests = 0;
    Matcher spans = SPAN.matcher(cell);
    while (spans.find()) {
      String span = spans.group(1);
      String[] parts = span.split("#", 2);
      if (CLASS.matcher(parts[0]).matches() || (parts[0].isEmpty() && parts.length == 2)) {
        current = parts[0].isEmpty() ? current : parts[0];
        if (!has(current, parts.length == 2 ? parts[1] : null)) {
          return "there is no " + current + (parts.length == 2 ? "#" + parts[1] : "");
        }
        tests++;
      } else if (span.startsWith("scripts/")) {
        if (!Files.exists(Repository.ROOT.resolve(span))) {
          return "there is no " + span;
        }
        tests++;
      } else if (METHOD.matcher(span).matches() && cell.contains("posix")) {
        if (POSIX.stream().noneMatch(name -> has(name, span))) {
          return "there is no " + span + " in the posix suite";
        }
        tests++;
      }
    }
    return tests == 0 ? "no test is named" : null;
  }

  /** Whether a cell names tests, and the short run leaves out all of them. */
  private boolean isLeftOut(String cell, String defaultClass) {
    String current = defaultClass;
    boolean isNamed = false;
    Matcher spans = SPAN.matcher(cell);
    while (spans.find()) {
      String[] parts = spans.group(1).split("#", 2);
      boolean isClass = CLASS.matcher(parts[0]).matches();
      if (isClass || (parts[0].isEmpty() && parts.length == 2)) {
        current = isClass ? parts[0] : current;
        if (isInShortRun(current, parts.length == 2 ? parts[1] : "*")) {
          return false;
        }
        isNamed = true;
      } else if (cell.contains("posix")) {
        return false;
      }
    }
    return isNamed;
  }

  /** Whether one of these methods of a class has no {@code @OnRequest}. */
  private boolean isInShortRun(String name, String method) {
    String source = sources.getOrDefault(name, "");
    if (CLASS_ON_REQUEST.matcher(source).find()) {
      return false;
    }
    Matcher tests =
        Pattern.compile("((?:\n  @.*(?:\n   .*)*)*)\n  void " + method.replace("*", "\\w*") + "\\(")
            .matcher(source);
    while (tests.find()) {
      if (tests.group(1).contains("Test") && !tests.group(1).contains("@OnRequest")) {
        return true;
      }
    }
    Matcher superclass = SUPERCLASS.matcher(source);
    return superclass.find() && isInShortRun(superclass.group(1), method);
  }

  /** Whether a test class has or inherits a method, whose name may end with a star. */
  private boolean has(String name, @Nullable String method) {
    String source = sources.get(name);
    if (source == null) {
      return false;
    }
    if (method == null
        || Pattern.compile("void " + method.replace("*", "\\w*") + "\\(").matcher(source).find()) {
      return true;
    }
    Matcher superclass = SUPERCLASS.matcher(source);
    return superclass.find() && has(superclass.group(1), method);
  }
}
