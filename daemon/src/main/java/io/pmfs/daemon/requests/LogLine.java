package io.pmfs.daemon.requests;

import io.pmfs.metadata.PathText;
import io.pmfs.posix.Errno;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A line of the access log, in the format of docs/formats.md: a request, or a note about missing
 * ones. Names of any bytes survive formatting and parsing.
 */
public sealed interface LogLine {
  /** The value of an unknown or absent number. */
  long NONE = -1;

  /** The result of a request that did not fail. */
  String OK = "OK";

  /** The line without its line feed. */
  String text();

  /** Parses a line; null if it is malformed. */
  static @Nullable LogLine parse(String text) {
    try {
      Matcher request = Request.FORM.matcher(text);
      if (request.matches()) {
        return Request.of(request);
      }
      Matcher missing = Missing.FORM.matcher(text);
      return missing.matches()
          ? new Missing(
              Instant.parse(missing.group(1)), Long.parseLong(missing.group(2)), missing.group(3))
          : null;
    } catch (IllegalArgumentException | DateTimeException e) {
      return null; // a number that is too large, a badly escaped path, an invalid time
    }
  }

  /**
   * An answered request.
   *
   * @param time when the request arrived, to the microsecond
   * @param result {@link #OK} or the name of an errno
   * @param bytes the bytes returned, or NONE
   * @param micros its duration
   */
  record Request(Instant time, Call call, String result, long bytes, long micros)
      implements LogLine {
    private static final String NUMBER = "(-|\\d{1,19})";

    private static final Pattern FORM =
        Pattern.compile(
            "(\\S{1,40}) \\[uid:N,gid:N,pid:N] ([a-z0-9_]{1,40})".replace("N", NUMBER)
                + " \\((?:\"/([^\"]*+)\"|#(\\d{1,19}))(?:,\"([^\"]*+)\")?(?:,N,N)?\\):"
                    .replace("N", NUMBER)
                + " (OK|E[A-Z0-9]{1,20})(?: \\((\\d{1,19})\\))? <(\\d{1,12})\\.(\\d{6})>");

    private static final long MICROS = 1_000_000;

    public Request {
      time = time.truncatedTo(ChronoUnit.MICROS);
    }

    private static Request of(Matcher line) {
      String path = line.group(6);
      String inode = line.group(7);
      String name = line.group(8);
      return new Request(
          Instant.parse(line.group(1)),
          new Call(
              number(line.group(2)),
              number(line.group(3)),
              number(line.group(4)),
              line.group(5),
              path == null ? null : PathText.decode(path),
              number(inode),
              name == null ? null : PathText.decode(name),
              number(line.group(9)),
              number(line.group(10))),
          line.group(11),
          number(line.group(12)),
          Long.parseLong(line.group(13)) * MICROS + Long.parseLong(line.group(14)));
    }

    private static long number(@Nullable String text) {
      return text == null || text.equals("-") ? NONE : Long.parseLong(text);
    }

    /** ENOSYS is not a failure: it only makes the kernel handle the operation itself. */
    public boolean isFailed() {
      return !result.equals(OK) && !result.equals(Errno.ENOSYS.name());
    }

    /** The result and, if known, the number of bytes returned. */
    public String outcome() {
      return bytes == NONE ? result : result + " (" + bytes + ")";
    }

    @Override
    public String text() {
      StringBuilder text = new StringBuilder(160);
      appendTo(text);
      return text.toString();
    }

    /** Appends the line without its line feed. Cheap, because it runs for every request. */
    void appendTo(StringBuilder text) {
      TimeText.append(time, text);
      text.append(' ');
      call.appendTo(text);
      text.append(": ").append(result);
      if (bytes != NONE) {
        text.append(" (").append(bytes).append(')');
      }
      text.append(" <").append(micros / MICROS).append('.');
      TimeText.appendSixDigits(micros % MICROS, text);
      text.append('>');
    }
  }

  /**
   * A note about requests that have no line.
   *
   * @param time when this was noticed, to the microsecond
   * @param requests their number
   */
  record Missing(Instant time, long requests, String reason) implements LogLine {
    private static final Pattern FORM =
        Pattern.compile(
            "(\\S{1,40}) \\.\\.\\. (\\d{1,18}) requests? (?:are|is) missing here: (.{1,200})");

    public Missing {
      time = time.truncatedTo(ChronoUnit.MICROS);
    }

    @Override
    public String text() {
      return TimeText.of(time)
          + " ... "
          + requests
          + (requests == 1 ? " request is" : " requests are")
          + " missing here: "
          + reason;
    }
  }

  /** Formats times with exactly six decimal places of a second. */
  final class TimeText {
    private static final DateTimeFormatter SECOND_FORM =
        DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.", Locale.ROOT).withZone(ZoneOffset.UTC);

    /** A cache, because most lines have the same second as the previous one. */
    private static volatile Second latest = new Second(0, SECOND_FORM.format(Instant.EPOCH));

    private record Second(long number, String text) {}

    private TimeText() {}

    private static String of(Instant time) {
      StringBuilder text = new StringBuilder(32);
      append(time, text);
      return text.toString();
    }

    private static void append(Instant time, StringBuilder text) {
      Second second = latest;
      if (second.number() != time.getEpochSecond()) {
        second = new Second(time.getEpochSecond(), SECOND_FORM.format(time));
        latest = second;
      }
      text.append(second.text());
      appendSixDigits(time.getNano() / 1000, text);
      text.append('Z');
    }

    private static void appendSixDigits(long number, StringBuilder text) {
      for (int divisor = 100_000; divisor > 0; divisor /= 10) {
        text.append((char) ('0' + number / divisor % 10));
      }
    }
  }
}
