package io.pmfs.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** Splits a shell line into commands and words, as far as the examples need. */
final class ShellLine {
  private static final Set<Character> SEPARATORS = Set.of('|', '&', ';', '(', ')');

  private final String line;
  private final List<List<String>> commands = new ArrayList<>();
  private List<String> words = new ArrayList<>();
  private final StringBuilder word = new StringBuilder();
  private boolean inWord;

  private ShellLine(String line) {
    this.line = line;
  }

  /** The commands of a line: words without quotes, redirections and comments. */
  static List<List<String>> commands(String line) {
    return new ShellLine(line).parse();
  }

  private List<List<String>> parse() {
    char quote = 0;
    for (int i = 0; i < line.length(); i++) {
      char c = line.charAt(i);
      if (quote != 0) {
        if (c == quote) {
          quote = 0;
        } else {
          word.append(c);
        }
      } else if (c == '\'' || c == '"') {
        quote = c;
        inWord = true;
      } else if (c == '#' && !inWord) {
        break;
      } else if (Character.isWhitespace(c)) {
        endWord();
      } else if (SEPARATORS.contains(c)) {
        endCommand();
      } else {
        word.append(c);
        inWord = true;
      }
    }
    endCommand();
    return commands;
  }

  private void endWord() {
    if (inWord) {
      words.add(word.toString());
      word.setLength(0);
      inWord = false;
    }
  }

  private void endCommand() {
    endWord();
    for (int i = 0; i < words.size(); i++) {
      if (words.get(i).matches("\\d?[<>]+")) {
        words.subList(i, Math.min(i + 2, words.size())).clear();
        i--;
      } else if (words.get(i).matches("\\d?[<>].*")) {
        words.remove(i--);
      }
    }
    if (!words.isEmpty()) {
      commands.add(words);
    }
    words = new ArrayList<>();
  }
}
