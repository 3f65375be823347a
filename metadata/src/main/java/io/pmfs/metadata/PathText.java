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
 * Makes untrusted text printable: names in a dataset, paths, answers of other nodes and users.
 * {@code %XX} stands for each byte of a character that has no glyph of its own, such as a line
 * feed, an escape, or one that reorders the line ({@link #printable}).
 *
 * <p>{@link #encode} does the same with paths for JSON on the control socket and in the access log,
 * and also escapes bytes that are not valid UTF-8 and the percent sign. So every byte survives.
 */
public final class PathText {
  private static final HexFormat HEX = HexFormat.of().withUpperCase();

  /** The lone surrogates from here on stand for bytes from 0x80 on that are not valid UTF-8. */
  private static final int UNDECODED = 0xdc80;

  private PathText() {}

  /** Text as one line that cannot control a terminal or reorder its characters. */
  public static String printable(String text) {
    return escaped(text, false, false);
  }

  /** Printable text in which line feeds end lines. */
  public static String printableLines(String text) {
    return escaped(text, true, false);
  }

  /** Printable JSON, with {@code \\uXXXX} for unprintable characters. */
  public static String printableJson(String json) {
    return escaped(json, true, true);
  }

  private static String escaped(String text, boolean hasLines, boolean isJson) {
    StringBuilder escaped = null;
    for (int i = 0; i < text.length(); ) {
      int c = text.codePointAt(i);
      boolean isShown = isShown(c) || (hasLines && c == '\n');
      if (!isShown && escaped == null) {
        escaped = new StringBuilder(text.length() + 16).append(text, 0, i);
      }
      if (escaped != null) {
        if (isShown) {
          escaped.appendCodePoint(c);
        } else if (isJson) {
          for (char unit : Character.toChars(c)) {
            escaped.append("\\u").append(HexFormat.of().toHexDigits(unit));
          }
        } else {
          escape(c, escaped);
        }
      }
      i += Character.charCount(c);
    }
    return escaped == null ? text : escaped.toString();
  }

  /** Whether a character is visible, or a space, and moves nothing else. */
  private static boolean isShown(int c) {
    if (c < 0x80) {
      return c >= ' ' && c != 0x7f;
    }
    return switch (Character.getType(c)) {
      case Character.CONTROL,
          Character.FORMAT,
          Character.LINE_SEPARATOR,
          Character.PARAGRAPH_SEPARATOR,
          Character.SURROGATE ->
          false;
      default -> true;
    };
  }

  private static void escape(int c, StringBuilder text) {
    if (c >= UNDECODED && c < UNDECODED + 0x80) {
      escape((byte) c, text);
      return;
    }
    // A lone surrogate has no UTF-8 form: its number is encoded as if it had.
    byte[] bytes =
        Character.getType(c) == Character.SURROGATE
            ? new byte[] {
              (byte) (0xe0 | (c >> 12)),
              (byte) (0x80 | ((c >> 6) & 0x3f)),
              (byte) (0x80 | (c & 0x3f))
            }
            : Character.toString(c).getBytes(UTF_8);
    for (byte b : bytes) {
      escape(b, text);
    }
  }

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
    text.append(printable(chars.toString().replace("%", "%25")));
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
        bytes.write(byteAt(text, i));
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

  private static int byteAt(String text, int percent) {
    if (text.length() - percent < 3
        || !HexFormat.isHexDigit(text.charAt(percent + 1))
        || !HexFormat.isHexDigit(text.charAt(percent + 2))) {
      throw new IllegalArgumentException(
          "path '" + text + "': % must be followed by two hexadecimal digits; write %25 for %");
    }
    return HexFormat.fromHexDigits(text, percent + 1, percent + 3);
  }
}
