package io.pmfs.distribution;

import java.util.ArrayList;
import java.util.List;

/**
 * A variable of the environment that is not an option, as docs/configuration.md describes it.
 *
 * @param name its name
 * @param meaning one or more sentences
 */
record Variable(String name, String meaning) {
  private static final String HEAD = "| variable | default | meaning |";

  /** The rows of the page's tables of variables for users. */
  static List<Variable> onPage(String page) {
    List<Variable> variables = new ArrayList<>();
    boolean inTable = false;
    for (String line : page.split("\n", -1)) {
      inTable = line.equals(HEAD) || (inTable && line.startsWith("|"));
      if (inTable && line.startsWith("| `")) {
        variables.add(ofRow(line.split(" *\\| *", -1)));
      }
    }
    return variables;
  }

  private static Variable ofRow(String[] cells) {
    String meaning = plain(cells[3]);
    return new Variable(
        plain(cells[1]),
        Character.toUpperCase(meaning.charAt(0))
            + meaning.substring(1)
            + "."
            + defaultOf(plain(cells[2])));
  }

  private static String defaultOf(String text) {
    if (text.isEmpty() || text.equals("-")) {
      return "";
    }
    return text.equals("set by pmfs") ? " Set by pmfs." : " Default: " + text + ".";
  }

  /** Without the marks of Markdown. */
  private static String plain(String cell) {
    return cell.replace("`", "").replaceAll("\\[([^]]*)\\]\\([^)]*\\)", "$1");
  }
}
