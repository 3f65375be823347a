package io.pmfs.cluster.peers;

import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A part of a file, as a Range header requests it (RFC 9110, 14). */
public record ByteRange(long from, long to) {
  private static final Pattern RANGE = Pattern.compile("bytes=(\\d{0,18})-(\\d{0,18})");

  /**
   * Parses a header.
   *
   * @param header null for the whole file
   */
  public static ByteRange of(@Nullable String header, long size) throws Refusal {
    if (header == null) {
      return new ByteRange(0, size);
    }
    Matcher fields = RANGE.matcher(header);
    if (!fields.matches() || header.equals("bytes=-")) {
      throw new Refusal(
          HttpResponseStatus.BAD_REQUEST,
          "the Range header is malformed: it must be one bytes=FIRST-LAST");
    }
    String first = fields.group(1);
    String last = fields.group(2);
    long from = first.isEmpty() ? Math.max(0, size - Long.parseLong(last)) : Long.parseLong(first);
    long end = first.isEmpty() || last.isEmpty() ? size : Long.parseLong(last) + 1;
    long to = Math.min(size, end);
    if (from >= size) {
      throw new Refusal(
          HttpResponseStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
          "the range begins at or after the end of the file, which has " + size + " bytes");
    }
    if (end <= from) {
      throw new Refusal(HttpResponseStatus.BAD_REQUEST, "the range ends before it begins");
    }
    return new ByteRange(from, to);
  }

  public long size() {
    return to - from;
  }

  public String header(long fileSize) {
    return "bytes " + from + "-" + (to - 1) + "/" + fileSize;
  }
}
