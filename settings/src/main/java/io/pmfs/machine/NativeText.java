package io.pmfs.machine;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CoderResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Text passed to and from the operating system, always as UTF-8.
 *
 * <p>The daemon runs with ISO-8859-1 as default charset, so that file names in FUSE requests stay
 * bytes. The JDK uses that charset (until 18) or {@code sun.jnu.encoding} (later) for environment
 * variables and for arguments of processes. This class uses neither: it reads the environment from
 * /proc and passes arguments as ASCII.
 */
public final class NativeText {
  private static final char REPLACEMENT = '\ufffd';
  private static final char ESCAPE = '\udc00';

  private NativeText() {}

  /** This process's environment as of its start. */
  public static Map<String, String> environment() throws IOException {
    return parseEnvironment(Files.readAllBytes(Path.of("/proc/self/environ")));
  }

  static Map<String, String> parseEnvironment(byte[] block) {
    Map<String, String> environment = new LinkedHashMap<>();
    for (String entry : new String(block, UTF_8).split("\0", -1)) {
      int equals = entry.indexOf('=');
      if (equals > 0) {
        environment.put(entry.substring(0, equals), entry.substring(equals + 1));
      }
    }
    return environment;
  }

  /**
   * The arguments of this process. The JVM replaces bytes that are not valid UTF-8; here each such
   * byte is a lone surrogate, U+DC80 to U+DCFF, which {@link #bytes} converts back.
   */
  public static String[] arguments(String... decoded) throws IOException {
    if (Arrays.stream(decoded).noneMatch(a -> a.indexOf(REPLACEMENT) >= 0)) {
      return decoded;
    }
    byte[] line = Files.readAllBytes(Path.of("/proc/self/cmdline"));
    return arguments(line, decoded);
  }

  /** The last arguments of a command line of NUL-terminated arguments. */
  static String[] arguments(byte[] line, String... decoded) {
    String[] raw = new String(line, ISO_8859_1).split("\0", -1);
    int first = raw.length - 1 - decoded.length;
    if (first < 0) {
      return decoded;
    }
    String[] arguments = new String[decoded.length];
    for (int i = 0; i < decoded.length; i++) {
      arguments[i] = text(raw[first + i].getBytes(ISO_8859_1));
    }
    return arguments;
  }

  private static String text(byte[] bytes) {
    StringBuilder text = new StringBuilder();
    ByteBuffer in = ByteBuffer.wrap(bytes);
    CharBuffer out = CharBuffer.allocate(bytes.length);
    CharsetDecoder decoder = UTF_8.newDecoder(); // reports bytes that it cannot decode
    while (true) {
      CoderResult result = decoder.decode(in, out, true);
      text.append(out.flip());
      out.clear();
      if (!result.isError()) {
        return text.toString();
      }
      for (int i = 0; i < result.length(); i++) {
        text.append((char) (ESCAPE + (in.get() & 0xff)));
      }
    }
  }

  /**
   * Encodes a text for the operating system: UTF-8, with surrogates of {@link #arguments} converted
   * back to their bytes.
   */
  public static byte[] bytes(String text) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(text.length());
    text.codePoints()
        .forEach(
            c -> {
              if (c >= ESCAPE + 0x80 && c <= ESCAPE + 0xff) {
                bytes.write(c - ESCAPE);
              } else {
                bytes.writeBytes(Character.toString(c).getBytes(UTF_8));
              }
            });
    return bytes.toByteArray();
  }

  public static PrintStream standardOutput() {
    return new PrintStream(new FileOutputStream(FileDescriptor.out), true, UTF_8);
  }

  public static PrintStream standardError() {
    return new PrintStream(new FileOutputStream(FileDescriptor.err), true, UTF_8);
  }

  /** A process that receives its arguments as UTF-8, whatever the default charset. */
  public static ProcessBuilder process(List<String> command) {
    if (command.stream().allMatch(NativeText::isAscii)) {
      return new ProcessBuilder(command);
    }
    // The shell converts each argument's octal escapes to bytes; the x keeps trailing newlines.
    List<String> shell = new ArrayList<>(List.of("/bin/sh", "-c", decodingScript(command), "pmfs"));
    command.forEach(argument -> shell.add(octal(argument)));
    return new ProcessBuilder(shell);
  }

  private static String decodingScript(List<String> command) {
    StringBuilder script = new StringBuilder();
    StringBuilder call = new StringBuilder("exec");
    for (int i = 1; i <= command.size(); i++) {
      script.append("a%d=$(printf '%%bx' \"${%d}\"); ".formatted(i, i));
      call.append(" \"${a%d%%x}\"".formatted(i));
    }
    return script.append(call).toString();
  }

  private static String octal(String argument) {
    StringBuilder escaped = new StringBuilder();
    for (byte b : argument.getBytes(UTF_8)) {
      escaped.append("\\0%03o".formatted(b & 0xff));
    }
    return escaped.toString();
  }

  private static boolean isAscii(String text) {
    return text.chars().allMatch(c -> c < 128);
  }
}
