package io.pmfs.cluster.peers;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.netty.handler.codec.http.HttpResponseStatus;
import io.pmfs.metadata.FileName;
import java.io.ByteArrayOutputStream;

/** Encodes and decodes paths below the dataset's root for a request's target (RFC 3986, 2.1). */
public final class PeerPath {
  /** PATH_MAX of Linux. */
  static final int MAX_BYTES = 4096;

  private static final String PLAIN = "-._~!$&'()*+,;=:@/";

  private PeerPath() {}

  public static String encode(FileName path) {
    String bytes = path.toLatin1();
    StringBuilder out = new StringBuilder(bytes.length() + 16);
    for (int i = 0; i < bytes.length(); i++) {
      char c = bytes.charAt(i);
      if (isPlain(c)) {
        out.append(c);
      } else {
        out.append('%').append(hex(c >> 4)).append(hex(c & 0xf));
      }
    }
    return out.toString();
  }

  /** Decodes a path; refuses one that names nothing at or below the root. */
  public static FileName decode(String encoded) throws Refusal {
    ByteArrayOutputStream out = new ByteArrayOutputStream(encoded.length());
    for (int i = 0; i < encoded.length(); i++) {
      char c = encoded.charAt(i);
      if (c == '%') {
        if (i + 2 >= encoded.length()) {
          throw malformed();
        }
        int high = digit(encoded.charAt(i + 1));
        int low = digit(encoded.charAt(i + 2));
        if (high < 0 || low < 0) {
          throw malformed();
        }
        c = (char) (high << 4 | low);
        if (c == '/') {
          throw forbidden();
        }
        i += 2;
      } else if (!isPlain(c)) {
        throw malformed();
      }
      out.write(c);
    }
    FileName path = FileName.ofLatin1(out.toString(ISO_8859_1));
    check(path);
    return path;
  }

  /** Refuses paths that leave the root, or have several spellings. */
  public static void check(FileName path) throws Refusal {
    if (path.size() > MAX_BYTES) {
      throw new Refusal(
          HttpResponseStatus.REQUEST_URI_TOO_LONG,
          "the path has more than " + MAX_BYTES + " bytes");
    }
    String bytes = path.toLatin1();
    if (bytes.isEmpty()) {
      return;
    }
    if (bytes.indexOf('\0') >= 0) {
      throw forbidden();
    }
    int start = 0;
    while (start <= bytes.length()) {
      int slash = bytes.indexOf('/', start);
      int end = slash < 0 ? bytes.length() : slash;
      int size = end - start;
      boolean isDots = size <= 2 && bytes.startsWith("..".substring(0, size), start);
      if (isDots) { // or empty
        throw forbidden();
      }
      start = end + 1;
    }
  }

  private static boolean isPlain(char c) {
    return (c >= 'a' && c <= 'z')
        || (c >= 'A' && c <= 'Z')
        || (c >= '0' && c <= '9')
        || PLAIN.indexOf(c) >= 0;
  }

  /** Character.digit would also accept the digits of other scripts. */
  private static int digit(char c) {
    return c < 0x80 ? Character.digit(c, 16) : -1;
  }

  private static char hex(int digit) {
    return Character.toUpperCase(Character.forDigit(digit, 16));
  }

  private static Refusal malformed() {
    return new Refusal(HttpResponseStatus.BAD_REQUEST, "the path is not correctly percent-encoded");
  }

  private static Refusal forbidden() {
    return new Refusal(
        HttpResponseStatus.FORBIDDEN,
        "the path must lie below the dataset's root; names must not be empty, . or .., or contain"
            + " / or NUL");
  }
}
