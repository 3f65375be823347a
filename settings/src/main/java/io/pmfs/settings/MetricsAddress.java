package io.pmfs.settings;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The address on which {@code --metrics} listens.
 *
 * @param host a name or a literal address without brackets
 * @param port 0 for any free port
 */
public record MetricsAddress(String host, int port) {
  static final String FORM = "[ADDRESS:]PORT";

  /** The default: other machines can connect only if the user names an address. */
  private static final String LOOPBACK = "127.0.0.1";

  private static final Pattern TEXT =
      Pattern.compile("(?:(\\[[0-9A-Fa-f:.]+]|[A-Za-z0-9][A-Za-z0-9.-]{0,252}):)?(\\d{1,5})");

  /** Parses an address; throws IllegalArgumentException with a message for the user. */
  static MetricsAddress parse(String text) {
    Matcher matcher = TEXT.matcher(text);
    if (!matcher.matches() || Integer.parseInt(matcher.group(2)) > 65_535) {
      throw new IllegalArgumentException(
          "'"
              + text
              + "' is not an address; write it as 9464, 0.0.0.0:9464, host:9464 or [::1]:9464;"
              + " port 0 picks any free port");
    }
    String host = matcher.group(1) == null ? LOOPBACK : matcher.group(1).replaceAll("[\\[\\]]", "");
    return new MetricsAddress(host, Integer.parseInt(matcher.group(2)));
  }

  /** Formatted as in a URL. */
  public static String text(String host, int port) {
    return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + port;
  }

  @Override
  public String toString() {
    return text(host, port);
  }
}
