package io.pmfs.daemon.requests;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.util.function.Consumer;

/**
 * Splits bytes that arrive in pieces into lines. Cuts lines longer than any in an access log, so
 * that any file can be read with little memory. Not thread-safe.
 */
public final class LineSplitter {
  /** More than the longest path of Linux with every byte escaped. */
  static final int LONGEST = 64 << 10;

  private final Consumer<String> lines;
  private final ByteArrayOutputStream begun = new ByteArrayOutputStream();

  public LineSplitter(Consumer<String> lines) {
    this.lines = lines;
  }

  /** Accepts the next piece. */
  public void accept(byte[] bytes, int offset, int length) {
    int begin = offset;
    for (int i = offset; i < offset + length; i++) {
      if (bytes[i] == '\n') {
        keep(bytes, begin, i - begin);
        lines.accept(begun.toString(UTF_8));
        begun.reset();
        begin = i + 1;
      }
    }
    keep(bytes, begin, offset + length - begin);
  }

  private void keep(byte[] bytes, int offset, int length) {
    begun.write(bytes, offset, Math.min(length, LONGEST - begun.size()));
  }

  /** Ends the input; the last line may lack its line feed. */
  public void end() {
    if (begun.size() > 0) {
      lines.accept(begun.toString(UTF_8));
      begun.reset();
    }
  }
}
