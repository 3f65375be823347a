package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/**
 * One file of a report: what it is for, and how its content is got.
 *
 * @param name with its directories, of ASCII without blanks
 * @param why a few words for who reads the archive
 * @param limit how long it may take
 * @param content run once, on a thread of its own that is left behind if it takes longer; null
 *     leaves the file out, a failure is told in the archive
 */
public record Piece(String name, String why, Duration limit, Callable<byte @Nullable []> content) {
  /** A disk or network file system that takes longer is a finding of its own. */
  static final Duration SHORT = Duration.ofSeconds(5);

  /** One of text that we made. */
  public static Piece text(String name, String why, Duration limit, Callable<String> text) {
    return new Piece(name, why, limit, () -> text.call().getBytes(UTF_8));
  }

  /** One of what files of the kernel hold, whose characters are bytes. */
  static Piece bytes(String name, String why, Callable<String> bytes) {
    return new Piece(name, why, SHORT, () -> bytes.call().getBytes(ISO_8859_1));
  }

  /** What may stand in a name of a file in the archive. */
  public static String plain(String text) {
    String plain = text.replaceAll("[^A-Za-z0-9._-]", "_");
    return plain.substring(0, Math.min(60, plain.length()));
  }
}
