package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Removes secrets from text: values of variables whose names look like a secret's, wherever they
 * occur; values under such keys; private keys in PEM; user names and passwords in URLs. Removes too
 * much rather than too little. Takes time linear in the text. Safe for use by many threads.
 */
public final class Redaction {
  static final String REMOVED = "[removed]";

  private static final Pattern LOOKS_SECRET =
      Pattern.compile("(?i)secret|passw|passphrase|token|credential|authorization|cookie|key");

  /** Names of variables that hold only the path of a secret, which occurs in harmless lines. */
  private static final Pattern IS_PLACE = Pattern.compile("(?i).*_(FILE|DIR|PATH|HOME|SOCK)");

  /** Shorter values would also match harmless words and numbers. */
  private static final int SHORTEST = 8;

  private static final Pattern KEY =
      Pattern.compile(
          "(?i)(?:secret|passw|passphrase|token|credential|authorization|cookie|key)"
              + "(?:[\\w-]|\\.(?!java:)){0,64}+(?:([\"']?)[ \\t]{0,8}[:=][ \\t]{0,8}|[ \\t](?=[^ \\t]))");

  private static final Pattern USER_INFO = Pattern.compile("(?<=//)[^\\s/\"'<>]{1,1024}@");

  private static final Pattern PRIVATE_KEY_BEGIN =
      Pattern.compile("-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY");

  private static final Pattern PRIVATE_KEY_END =
      Pattern.compile("-----END [A-Z0-9 ]{0,40}PRIVATE KEY-*");

  private final Set<String> known = new CopyOnWriteArraySet<>();

  /** Learns the secrets in an environment: from now on they are removed everywhere. */
  public void learn(Map<String, String> environment) {
    environment.forEach(
        (name, value) -> {
          String secret = value.strip();
          if (looksSecret(name)
              && !IS_PLACE.matcher(name).matches()
              && secret.length() >= SHORTEST) {
            known.addAll(formsOf(secret));
          }
        });
  }

  static boolean looksSecret(String name) {
    return LOOKS_SECRET.matcher(name).find();
  }

  /** The secret unchanged, as in JSON, and as in a URL; each char is a byte. */
  private static Set<String> formsOf(String secret) {
    StringBuilder json = new StringBuilder();
    StringBuilder url = new StringBuilder();
    String bytes = new String(secret.getBytes(UTF_8), ISO_8859_1);
    for (int i = 0; i < bytes.length(); i++) {
      char c = bytes.charAt(i);
      json.append(c == '"' || c == '\\' ? "\\" + c : c == '\n' ? "\\n" : String.valueOf(c));
      boolean isPlain = c < 128 && (Character.isLetterOrDigit(c) || "-._~".indexOf(c) >= 0);
      url.append(isPlain ? String.valueOf(c) : String.format("%%%02X", (int) c));
    }
    Set<String> forms = new LinkedHashSet<>();
    forms.add(bytes);
    forms.add(json.toString());
    forms.add(url.toString());
    return forms;
  }

  byte[] of(byte[] text) {
    String bytes = new String(text, ISO_8859_1);
    for (String secret : known) {
      bytes = bytes.replace(secret, REMOVED);
    }
    bytes = withoutPrivateKeys(bytes);
    bytes = USER_INFO.matcher(bytes).replaceAll(Matcher.quoteReplacement(REMOVED) + "@");
    return withoutValues(bytes).getBytes(ISO_8859_1);
  }

  /** For text that is shown and not archived. */
  String of(String text) {
    return new String(of(text.getBytes(UTF_8)), UTF_8);
  }

  private static String withoutPrivateKeys(String text) {
    StringBuilder kept = new StringBuilder(text.length());
    Matcher begin = PRIVATE_KEY_BEGIN.matcher(text);
    Matcher end = PRIVATE_KEY_END.matcher(text);
    int from = 0;
    if (end.find() && !(begin.find() && begin.start() < end.start())) {
      kept.append(REMOVED); // the text begins inside of a key
      from = end.end();
    }
    while (begin.find(from)) {
      kept.append(text, from, begin.start()).append(REMOVED);
      if (!end.find(begin.end())) {
        return kept.toString();
      }
      from = end.end();
    }
    return kept.append(text, from, text.length()).toString();
  }

  private static String withoutValues(String text) {
    StringBuilder kept = new StringBuilder(text.length());
    Matcher key = KEY.matcher(text);
    int from = 0;
    while (from <= text.length() && key.find(from)) {
      int value = key.end();
      String quote = key.group(1);
      if (quote == null && !isOption(text, key.start())) {
        // A word of a sentence.
        kept.append(text, from, value);
        from = value;
        continue;
      }
      int end = Value.end(text, value, quote == null ? "" : quote);
      kept.append(text, from, value);
      if (end > value) {
        boolean isQuoted = text.charAt(value) == '"' || (quote != null && quote.equals("\""));
        kept.append(isQuoted ? "\"" + REMOVED + "\"" : REMOVED);
      }
      from = end;
    }
    return from >= text.length()
        ? kept.toString()
        : kept.append(text, from, text.length()).toString();
  }

  /** Whether the word belongs to an option, so that its value follows after a blank. */
  private static boolean isOption(String text, int word) {
    int start = word;
    while (start > 0
        && word - start < 64
        && (Character.isLetterOrDigit(text.charAt(start - 1)) || text.charAt(start - 1) == '-')) {
      start--;
    }
    return text.startsWith("--", start);
  }
}
