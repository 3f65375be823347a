package io.pmfs.cli;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A page of the documentation, parsed as the subset of CommonMark that the pages use.
 *
 * @param path the file's path
 * @param lines the text
 */
record MarkdownPage(Path path, List<String> lines) {
  private static final Pattern LINK = Pattern.compile("\\[[^\\[\\]]*\\]\\(([^()\\s]+)\\)");
  private static final Pattern SPAN = Pattern.compile("`([^`]+)`");
  private static final Pattern HEADING = Pattern.compile("#{1,6} +(.*?) *#*");
  private static final Pattern TABLE_RULE = Pattern.compile("\\|[-:| ]+\\|");

  /** A piece of a page with the number of its first line. */
  record Piece(int line, String text) {}

  /** A block of code: the language of its fence, empty if it is indented, and its lines. */
  record Code(String language, List<Piece> lines) {
    String text() {
      return String.join("\n", lines.stream().map(Piece::text).toList());
    }
  }

  /** A row of a table, with the names of the columns from the table's head. */
  record Row(int line, List<String> head, List<String> cells) {
    String cell(String column) {
      int index = head.indexOf(column);
      return index < 0 || index >= cells.size() ? "" : cells.get(index);
    }
  }

  static MarkdownPage read(Path path) {
    return of(path, Repository.text(path));
  }

  static MarkdownPage of(Path path, String text) {
    return new MarkdownPage(path, List.of(text.split("\n", -1)));
  }

  /** The page and line, for messages. */
  String at(int line) {
    return Repository.ROOT.relativize(path) + ":" + line;
  }

  String text() {
    return String.join("\n", lines);
  }

  /** The targets of its links. */
  List<Piece> links() {
    List<Piece> links = new ArrayList<>();
    String prose = SPAN.matcher(prose()).replaceAll("code");
    Matcher matcher = LINK.matcher(prose);
    while (matcher.find()) {
      links.add(new Piece(lineAt(prose, matcher.start(1)), matcher.group(1)));
    }
    return links;
  }

  /** The texts in back quotes outside of blocks of code. */
  List<Piece> spans() {
    List<Piece> spans = new ArrayList<>();
    String prose = prose();
    Matcher matcher = SPAN.matcher(prose);
    while (matcher.find()) {
      spans.add(
          new Piece(lineAt(prose, matcher.start()), matcher.group(1).replaceAll("\\s+", " ")));
    }
    return spans;
  }

  /** The anchors of the headings, by the rule of GitHub. */
  Set<String> anchors() {
    Map<String, Integer> seen = new HashMap<>();
    Set<String> anchors = new HashSet<>();
    for (String line : prose().split("\n", -1)) {
      Matcher heading = HEADING.matcher(line);
      if (heading.matches()) {
        String anchor = anchor(heading.group(1));
        int count = seen.merge(anchor, 1, Integer::sum);
        anchors.add(count == 1 ? anchor : anchor + "-" + (count - 1));
      }
    }
    return anchors;
  }

  static String anchor(String heading) {
    return LINK.matcher(heading)
        .replaceAll("")
        .toLowerCase(Locale.ROOT)
        .replaceAll("[^\\p{L}\\p{N}_ -]", "")
        .replace(' ', '-');
  }

  List<Code> code() {
    List<Code> blocks = new ArrayList<>();
    Code block = null;
    boolean fenced = false;
    for (int i = 0; i < lines.size(); i++) {
      String line = lines.get(i);
      if (line.startsWith("```")) {
        block = fenced ? null : add(blocks, line.substring(3).strip());
        fenced = !fenced;
      } else if (fenced && block != null) {
        block.lines().add(new Piece(i + 1, line));
      } else if (isIndented(i)) {
        block = block == null ? add(blocks, "") : block;
        block.lines().add(new Piece(i + 1, line.substring(4)));
      } else if (!line.isBlank()) {
        block = null;
      }
    }
    return blocks;
  }

  private static Code add(List<Code> blocks, String language) {
    Code block = new Code(language, new ArrayList<>());
    blocks.add(block);
    return block;
  }

  List<Row> rows() {
    List<Row> rows = new ArrayList<>();
    for (int i = 1; i < lines.size(); i++) {
      if (!TABLE_RULE.matcher(lines.get(i)).matches()) {
        continue;
      }
      List<String> head = cells(lines.get(i - 1));
      for (int row = i + 1; row < lines.size() && lines.get(row).startsWith("|"); row++) {
        rows.add(new Row(row + 1, head, cells(lines.get(row))));
      }
    }
    return rows;
  }

  private static List<String> cells(String line) {
    String inner = line.strip().replaceAll("^\\||\\|$", "");
    return Pattern.compile("(?<!\\\\)\\|")
        .splitAsStream(inner)
        .map(cell -> cell.strip().replace("\\|", "|"))
        .toList();
  }

  /** The text with empty lines in place of blocks of code. */
  private String prose() {
    List<String> prose = new ArrayList<>(lines);
    boolean fenced = false;
    for (int i = 0; i < lines.size(); i++) {
      boolean fence = lines.get(i).startsWith("```");
      if (fenced || fence || isIndented(i)) {
        prose.set(i, "");
      }
      fenced ^= fence;
    }
    return String.join("\n", prose);
  }

  /** Whether the line is indented code, which begins after an empty line. */
  private boolean isIndented(int index) {
    int i = index;
    while (i >= 0 && lines.get(i).startsWith("    ")) {
      i--;
    }
    return i < index && !lines.get(index).isBlank() && (i < 0 || lines.get(i).isBlank());
  }

  private static int lineAt(String text, int offset) {
    return (int) text.substring(0, offset).chars().filter(c -> c == '\n').count() + 1;
  }
}
