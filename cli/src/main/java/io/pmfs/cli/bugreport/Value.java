package io.pmfs.cli.bugreport;

/** Finds the end of the value after a key, in JSON, TOML, variables, options and log lines. */
final class Value {
  private Value() {}

  /**
   * The index after the value that begins at {@code start}.
   *
   * @param keyQuote the quotation mark that closed the key in JSON; empty elsewhere, where an
   *     unquoted value extends to the end of its line
   */
  static int end(String text, int start, String keyQuote) {
    if (start >= text.length()) {
      return start;
    }
    char first = text.charAt(start);
    if (first == '"' || first == '\'') {
      return endOfQuoted(text, start);
    }
    if (keyQuote.isEmpty()) {
      return endOfLine(text, start);
    }
    return first == '[' || first == '{' ? endOfNested(text, start) : endOfBare(text, start);
  }

  private static int endOfQuoted(String text, int start) {
    char quote = text.charAt(start);
    int i = start + 1;
    while (i < text.length() && text.charAt(i) != quote && text.charAt(i) != '\n') {
      i += text.charAt(i) == '\\' ? 2 : 1;
    }
    return Math.min(i + 1, text.length());
  }

  private static int endOfLine(String text, int start) {
    int end = start;
    while (end < text.length() && text.charAt(end) != '\n' && text.charAt(end) != '\0') {
      end++;
    }
    return end;
  }

  private static int endOfBare(String text, int start) {
    int end = start;
    while (end < text.length() && ",}]\n".indexOf(text.charAt(end)) < 0) {
      end++;
    }
    return end;
  }

  private static int endOfNested(String text, int start) {
    int depth = 0;
    for (int i = start; i < text.length(); ) {
      char c = text.charAt(i);
      if (c == '"') {
        i = endOfQuoted(text, i);
        continue;
      }
      depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
      i++;
      if (depth == 0) {
        return i;
      }
    }
    return text.length();
  }
}
