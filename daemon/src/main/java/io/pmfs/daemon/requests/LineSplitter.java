package io.pmfs.daemon.requests;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.util.function.Consumer;

/**
 * Lines of bytes that come in pieces. A line that is longer than any of an access log is cut, so
 * that any file may be looked at with little memory. For one thread.
 */
public final class LineSplitter {
  /** The longest path that Linux takes, each byte escaped, and more. */
  static final int LONGEST = 64 << 10;

  private final Consumer<String> lines;
  private final ByteArrayOutputStream begun = new ByteArrayOutputStream();

  public LineSplitter(Consumer<String> lines) {
    this.lines = lines;
  }

  /** Takes the next piece. */
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

  /** The last line may lack its end. */
  public void end() {
    if (begun.size() > 0) {
      lines.accept(begun.toString(UTF_8));
      begun.reset();
    }
  }
}
