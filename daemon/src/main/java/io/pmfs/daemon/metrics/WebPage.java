package io.pmfs.daemon.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.hash.Hashing;
import com.google.common.io.Resources;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Base64;
import java.util.Map;

/** The web page: one self-contained file, whose policy permits only its own script. */
public final class WebPage {
  private WebPage() {}

  public static HttpContent content() {
    String page;
    try {
      page = Resources.toString(Resources.getResource(WebPage.class, "page.html"), UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    String policy =
        "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none';"
            + " frame-ancestors 'none'; script-src %s; style-src %s"
                .formatted(hash(page, "script"), hash(page, "style"));
    return new HttpContent(
        "text/html; charset=utf-8",
        Map.of("Content-Security-Policy", policy, "Referrer-Policy", "no-referrer"),
        () -> page);
  }

  /** The hash of the page's only element of this name, for the browser to verify. */
  private static String hash(String page, String element) {
    int begin = page.indexOf("<" + element + ">") + element.length() + 2;
    String content = page.substring(begin, page.indexOf("</" + element + ">"));
    byte[] hash = Hashing.sha256().hashString(content, UTF_8).asBytes();
    return "'sha256-" + Base64.getEncoder().encodeToString(hash) + "'";
  }
}
