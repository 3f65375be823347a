package io.pmfs.distribution;

import java.util.ArrayList;
import java.util.List;

/** The source of one manual page, in the macros of man(7). Escapes all text that it is given. */
final class Roff {
  private static final String ITALIC = "\\fI";
  private static final String BOLD = "\\fB";
  private static final String ROMAN = "\\fR";

  private final StringBuilder source = new StringBuilder();

  Roff title(String name, String section, String date, String version) {
    source.append(
        ".TH %s %s %s \"%s\" \"pmfs manual\"\n"
            .formatted(escape(name), section, escape(date), escape(version)));
    // Words such as --read-mode must not be broken, nor lines stretched.
    return verbatim(".nh\n.ad l\n");
  }

  /** Lines that are already in the macros of man(7). */
  Roff verbatim(String lines) {
    source.append(lines);
    return this;
  }

  Roff heading(String text) {
    source.append(".SH ").append(escape(text)).append('\n');
    return this;
  }

  Roff subheading(String text) {
    source.append(".SS ").append(escape(text)).append('\n');
    return this;
  }

  Roff paragraph(String text) {
    source.append(".PP\n").append(line(text));
    return this;
  }

  /** A paragraph that begins with a command in bold. */
  Roff call(String command, String arguments) {
    source.append(".PP\n" + BOLD + escape(command) + ROMAN + escape(arguments) + "\n");
    return this;
  }

  /** An entry of a list: a word, its value as a placeholder, and what it means. */
  Roff entry(String word, String placeholder, String meaning) {
    source
        .append(".TP\n" + BOLD + escape(word) + ROMAN)
        .append(placeholder.isEmpty() ? "" : ITALIC + escape(placeholder) + ROMAN)
        .append('\n')
        .append(line(meaning));
    return this;
  }

  /** Lines as the help of picocli has them: those that begin with two spaces stay as they are. */
  Roff blocks(List<String> lines) {
    List<String> block = new ArrayList<>();
    for (String line : lines) {
      if (!block.isEmpty() && (line.isBlank() || isLiteral(line) != isLiteral(block.get(0)))) {
        block(block);
        block.clear();
      }
      if (!line.isBlank()) {
        block.add(line);
      }
    }
    if (!block.isEmpty()) {
      block(block);
    }
    return this;
  }

  private static boolean isLiteral(String line) {
    return line.startsWith("  ");
  }

  private void block(List<String> lines) {
    if (!isLiteral(lines.get(0))) {
      paragraph(String.join(" ", lines));
      return;
    }
    source.append(".PP\n.RS 4\n.nf\n");
    lines.forEach(line -> source.append(line(line.substring(2))));
    source.append(".fi\n.RE\n");
  }

  /** At the beginning of a line, dots and quotes would begin a request. */
  private static String line(String text) {
    return (text.startsWith(".") || text.startsWith("'") ? "\\&" : "") + escape(text) + "\n";
  }

  /** Characters that groff would replace by others, see groff_char(7). */
  private static String escape(String text) {
    return text.replace("\\", "\\(rs")
        .replace("-", "\\-")
        .replace("'", "\\(aq")
        .replace("`", "\\(ga")
        .replace("^", "\\(ha")
        .replace("~", "\\(ti")
        .replace("\"", "\\(dq");
  }

  @Override
  public String toString() {
    return source.toString();
  }
}
