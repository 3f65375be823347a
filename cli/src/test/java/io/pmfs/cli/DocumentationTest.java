package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Checks links, paths, numbers of decisions and names of classes on the pages. */
final class DocumentationTest {
  private static final Pattern ABSOLUTE =
      Pattern.compile("(?<=[\\s\"'(`=:,]|^)/([a-z][\\w.-]*)/\\w");

  /** Directories of every Linux system, and those in examples. */
  private static final Set<String> USUAL =
      Set.of(
          "bin", "dev", "etc", "opt", "proc", "run", "sys", "tmp", "usr", "var", // every system
          "lustre", "gpfs", "nfs", "beegfs", "local", "mnt", "nvme", "pmem", "path", "scratch",
          "data", "pmfs", // in the containers of examples
          "v1", "tasks", // resources of HTTP
          "train"); // below a mount point

  /** The files of a checkout that are in packages: distribution/src/main/assembly/tree.xml. */
  private static final Pattern PACKAGED =
      Pattern.compile(
          "(README|CHANGELOG|CONTRIBUTING)\\.md|LICENSE|docs(/.*)?"
              + "|scripts/slurm/(pmfs-job\\.conf|examples(/.*)?)");

  private static final Pattern DECISION = Pattern.compile("(\\d{4})-[a-z0-9-]+\\.md");
  private static final Pattern CLASS = Pattern.compile("[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+");

  @Test
  void links_leadSomewhere() {
    List<String> broken = new ArrayList<>();
    for (MarkdownPage page : Repository.pages()) {
      for (MarkdownPage.Piece link : page.links()) {
        if (!leadsSomewhere(page, link.text())) {
          broken.add(page.at(link.line()) + ": " + link.text());
        }
      }
    }
    assertThat(broken).isEmpty();
  }

  @Test
  void links_ofPackagedPages_leadToPackagedFiles() {
    List<String> broken = new ArrayList<>();
    for (MarkdownPage page : Repository.pages()) {
      for (MarkdownPage.Piece link : page.links()) {
        String file = link.text().split("#", 2)[0];
        Path target = page.path().resolveSibling(file).normalize();
        boolean elsewhere = file.isEmpty() || file.contains(":");
        if (isPackaged(page.path()) && !elsewhere && !isPackaged(target)) {
          broken.add(page.at(link.line()) + ": " + link.text());
        }
      }
    }
    assertThat(broken).isEmpty();
  }

  private static boolean isPackaged(Path file) {
    return PACKAGED.matcher(Repository.ROOT.relativize(file).toString()).matches();
  }

  private static boolean leadsSomewhere(MarkdownPage page, String link) {
    if (link.matches("(https?|mailto):.*")) {
      return true;
    }
    String[] parts = link.split("#", 2);
    Path target =
        parts[0].isEmpty() ? page.path() : page.path().resolveSibling(parts[0]).normalize();
    if (!target.startsWith(Repository.ROOT) || !Files.exists(target)) {
      return false;
    }
    return parts.length == 1 || MarkdownPage.read(target).anchors().contains(parts[1]);
  }

  @Test
  void readme_hasAtMost900Words() {
    String text = Repository.page("README.md").text();

    assertThat(text.strip().split("\\s+")).hasSizeLessThanOrEqualTo(900);
  }

  @Test
  void decisions_areNumberedWithoutGaps() throws IOException {
    List<String> names;
    try (Stream<Path> files = Files.list(Repository.ROOT.resolve("docs/decisions"))) {
      names = files.map(file -> String.valueOf(file.getFileName())).sorted().toList();
    }
    assertThat(names).allMatch(name -> DECISION.matcher(name).matches());
    assertThat(names.stream().map(name -> Integer.parseInt(name.substring(0, 4))))
        .containsExactlyElementsOf(IntStream.rangeClosed(1, names.size()).boxed().toList());
  }

  @Test
  void decisions_beginWithTheirNumber() {
    for (MarkdownPage page : Repository.pages()) {
      Matcher decision = DECISION.matcher(String.valueOf(page.path().getFileName()));
      if (decision.matches()) {
        assertThat(page.lines().get(0))
            .as(page.at(1))
            .startsWith("# " + Integer.parseInt(decision.group(1)) + ". ");
      }
    }
  }

  @Test
  void paths_areOfNoMachineInParticular() {
    List<String> foreign = new ArrayList<>();
    for (MarkdownPage page : Repository.pages()) {
      for (int i = 0; i < page.lines().size(); i++) {
        Matcher path = ABSOLUTE.matcher(page.lines().get(i));
        while (path.find()) {
          if (!USUAL.contains(path.group(1))) {
            foreign.add(page.at(i + 1) + ": " + path.group());
          }
        }
      }
    }
    assertThat(foreign).isEmpty();
  }

  @Test
  void classes_thatTheArchitectureNames_areThere() {
    Set<String> files =
        Repository.javaFiles(true).stream()
            .map(file -> String.valueOf(file.getFileName()).replace(".java", ""))
            .collect(Collectors.toSet());
    MarkdownPage page = Repository.page("docs/architecture.md");

    assertThat(page.spans().stream().map(MarkdownPage.Piece::text))
        .filteredOn(text -> CLASS.matcher(text).matches())
        .isNotEmpty()
        .isSubsetOf(files);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "## What `auto` is derived from | what-auto-is-derived-from",
        "# 1. The source is read | 1-the-source-is-read",
        "### A copy is in memory once | a-copy-is-in-memory-once",
        "### Exit statuses: 0 & 1 | exit-statuses-0--1"
      })
  void anchors_areThoseOfGitHub(String heading, String anchor) {
    Path path = Repository.ROOT.resolve("page.md");

    assertThat(MarkdownPage.of(path, heading).anchors()).containsExactly(anchor);
  }

  @Test
  void page_takenApart_tellsCodeFromText() {
    MarkdownPage page =
        MarkdownPage.of(
            Repository.ROOT.resolve("page.md"),
            """
            Text with `code` and [a
            link](there.md#x).

                pmfs status
                pmfs doctor

            ```toml
            key = "[no](link)"
            ```

            | a | b |
            |---|---|
            | 1 | `x \\| y` |
            """);

    assertThat(page.spans().stream().map(MarkdownPage.Piece::text))
        .containsExactly("code", "x \\| y");
    assertThat(page.links()).containsExactly(new MarkdownPage.Piece(2, "there.md#x"));
    assertThat(page.code().stream().map(MarkdownPage.Code::text))
        .containsExactly("pmfs status\npmfs doctor", "key = \"[no](link)\"");
    assertThat(page.code().stream().map(MarkdownPage.Code::language)).containsExactly("", "toml");
    assertThat(page.rows()).hasSize(1);
    assertThat(page.rows().get(0).cell("b")).isEqualTo("`x | y`");
  }
}
