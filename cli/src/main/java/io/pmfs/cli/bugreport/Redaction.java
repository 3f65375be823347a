package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.URLEncoder;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Removes secrets from text: values of variables with names that look like secrets, wherever they
 * occur; values under such keys; private keys in PEM; user names and passwords in URLs. Errs on the
 * side of removing too much. Runs in linear time. Thread-safe.
 */
public final class Redaction {
  static final String REMOVED = "[removed]";

  private static final String SECRET =
      "(?i)(?:secret|passw|passphrase|token|credential|authorization|cookie|key)";
  private static final Pattern LOOKS_SECRET = Pattern.compile(SECRET);

  /** Variables that contain only the path of a secret, which may occur in harmless lines. */
  private static final Pattern IS_PLACE = Pattern.compile("(?i).*_(FILE|DIR|PATH|HOME|SOCK)");

  /** Shorter values would also match harmless words and numbers. */
  private static final int SHORTEST = 8;

  /** A key and its separator, which may be a blank after an option. */
  private static final Pattern KEY =
      Pattern.compile(
          SECRET
              + "(?:[\\w-]|\\.(?!java:)){0,64}+(?:([\"']?)[ \\t]{0,8}[:=][ \\t]{0,8}"
              + "|[ \\t](?<=--[\\w.-]{1,80}[ \\t])(?=[^ \\t]))");

  private static final Pattern USER_INFO = Pattern.compile("(?<=//)[^\\s/\"'<>]{1,1024}@");

  private static final String BEGIN = "-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY";
  private static final String END = "-----END [A-Z0-9 ]{0,40}PRIVATE KEY-*";
  private static final Pattern KEY_BEGIN = Pattern.compile(BEGIN);
  private static final Pattern KEY_END = Pattern.compile(END);
  private static final Pattern PRIVATE_KEY = Pattern.compile(BEGIN + "(?s:.*?)(?:" + END + "|\\z)");

  private final Set<String> known = new CopyOnWriteArraySet<>();

  /** Adds the secrets in an environment, to be removed everywhere. */
  public void learn(Map<String, String> environment) {
    environment.forEach(
        (name, value) -> {
          String secret = value.strip();
          boolean isSecret = looksSecret(name) && !IS_PLACE.matcher(name).matches();
          if (isSecret && secret.length() >= SHORTEST) {
            known.addAll(formsOf(secret));
          }
        });
  }

  static boolean looksSecret(String name) {
    return LOOKS_SECRET.matcher(name).find();
  }

  /** The secret unchanged, as in JSON, and as in a URL; each char is a byte. */
  private static List<String> formsOf(String secret) {
    String bytes = new String(secret.getBytes(UTF_8), ISO_8859_1);
    String json = bytes.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n");
    String form = URLEncoder.encode(secret, UTF_8);
    String url = form.replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
    return List.of(bytes, json, url);
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

  /** Redacts text for display. */
  String of(String text) {
    return new String(of(text.getBytes(UTF_8)), UTF_8);
  }

  private static String withoutPrivateKeys(String text) {
    Matcher begin = KEY_BEGIN.matcher(text);
    Matcher end = KEY_END.matcher(text);
    boolean beginsInside = end.find() && !(begin.find() && begin.start() < end.start());
    String whole = beginsInside ? REMOVED + text.substring(end.end()) : text;
    return PRIVATE_KEY.matcher(whole).replaceAll(Matcher.quoteReplacement(REMOVED));
  }

  private static String withoutValues(String text) {
    StringBuilder kept = new StringBuilder(text.length());
    Matcher key = KEY.matcher(text);
    int from = 0;
    while (key.find(from)) {
      int value = key.end();
      String quote = key.group(1);
      int end = endOfValue(text, value, quote != null && !quote.isEmpty());
      kept.append(text, from, value);
      if (end > value) {
        boolean isQuoted = text.charAt(value) == '"' || "\"".equals(quote);
        kept.append(isQuoted ? "\"" + REMOVED + "\"" : REMOVED);
      }
      from = end;
    }
    return kept.append(text, from, text.length()).toString();
  }

  /**
   * The end of a value: of a quoted string or, in JSON, of a list, an object, or up to the next
   * value; otherwise the end of the line.
   */
  private static int endOfValue(String text, int start, boolean isJson) {
    char first = start < text.length() ? text.charAt(start) : '\n';
    if (first == '"' || first == '\'') {
      return endOfQuoted(text, start);
    }
    if (!isJson || (first != '[' && first != '{')) {
      return next(text, start, isJson ? ",}]\n" : "\n\0");
    }
    int depth = 0;
    int at = start;
    do {
      char c = text.charAt(at);
      depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
      at = c == '"' ? endOfQuoted(text, at) : at + 1;
    } while (depth > 0 && at < text.length());
    return at;
  }

  private static int endOfQuoted(String text, int start) {
    int at = start + 1;
    while (at < text.length() && text.charAt(at) != text.charAt(start) && text.charAt(at) != '\n') {
      at += text.charAt(at) == '\\' ? 2 : 1;
    }
    return Math.min(at + 1, text.length());
  }

  private static int next(String text, int start, String ends) {
    int at = start;
    while (at < text.length() && ends.indexOf(text.charAt(at)) < 0) {
      at++;
    }
    return at;
  }
}
