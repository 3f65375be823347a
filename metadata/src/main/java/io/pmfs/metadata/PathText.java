package io.pmfs.metadata;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CoderResult;
import java.nio.charset.CodingErrorAction;
import java.util.HexFormat;

/**
 * Encodes paths for JSON on the control socket and in the access log: as UTF-8 text, with {@code
 * %XX} for each byte that is not valid UTF-8, for control characters and for the percent sign. So
 * every byte survives.
 */
public final class PathText {
  private static final HexFormat HEX = HexFormat.of().withUpperCase();

  private PathText() {}

  /** Encodes a path. */
  public static String encode(FileName path) {
    byte[] raw = path.raw();
    return isPlain(raw) ? new String(raw, ISO_8859_1) : encode(ByteBuffer.wrap(raw));
  }

  /** Whether each byte is one character that needs no escape, as in most names. */
  private static boolean isPlain(byte[] path) {
    for (byte b : path) {
      if (b < ' ' || b == 0x7f || b == '%') {
        return false;
      }
    }
    return true;
  }

  private static String encode(ByteBuffer bytes) {
    CharBuffer chars = CharBuffer.allocate(bytes.remaining());
    CharsetDecoder decoder =
        UTF_8
            .newDecoder()
            .onMalformedInput(CodingErrorAction.REPORT)
            .onUnmappableCharacter(CodingErrorAction.REPORT);
    StringBuilder text = new StringBuilder(bytes.remaining());
    while (true) {
      CoderResult result = decoder.decode(bytes, chars, true);
      append(chars.flip(), text);
      chars.clear();
      if (!result.isError()) {
        return text.toString();
      }
      for (int i = 0; i < result.length(); i++) {
        escape(bytes.get(), text);
      }
    }
  }

  private static void append(CharBuffer chars, StringBuilder text) {
    while (chars.hasRemaining()) {
      char c = chars.get();
      if (c == '%' || c < ' ' || c == 0x7f) {
        escape((byte) c, text);
      } else {
        text.append(c);
      }
    }
  }

  private static void escape(byte b, StringBuilder text) {
    text.append('%').append(HEX.toHexDigits(b));
  }

  /**
   * Decodes a path; accepts any byte escaped.
   *
   * @throws IllegalArgumentException with a message for the user
   */
  public static FileName decode(String text) {
    if (text.indexOf('%') < 0 && UTF_8.newEncoder().canEncode(text)) {
      return FileName.of(text);
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(text.length() + 16);
    for (int i = 0; i < text.length(); ) {
      int c = text.codePointAt(i);
      if (c == '%') {
        bytes.write(escaped(text, i));
        i += 3;
      } else if (c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE) {
        throw new IllegalArgumentException("path: unpaired surrogate at " + i);
      } else {
        bytes.writeBytes(Character.toString(c).getBytes(UTF_8));
        i += Character.charCount(c);
      }
    }
    return FileName.of(bytes.toByteArray());
  }

  private static int escaped(String text, int percent) {
    if (text.length() - percent < 3
        || !HexFormat.isHexDigit(text.charAt(percent + 1))
        || !HexFormat.isHexDigit(text.charAt(percent + 2))) {
      throw new IllegalArgumentException(
          "path '" + text + "': % must be followed by two hexadecimal digits; write %25 for %");
    }
    return HexFormat.fromHexDigits(text, percent + 1, percent + 3);
  }
}
