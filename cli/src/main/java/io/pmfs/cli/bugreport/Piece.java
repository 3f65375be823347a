package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/**
 * One file of a report: its purpose, and how to get its content.
 *
 * @param name the path in the archive, ASCII without blanks
 * @param why a short description for the README of the archive
 * @param limit how long it may take
 * @param content called once, in a separate thread that is abandoned at the limit; null omits the
 *     file, and a failure is recorded in the archive
 */
public record Piece(String name, String why, Duration limit, Callable<byte @Nullable []> content) {
  /** If a disk or network file system takes longer, that is itself a finding. */
  public static final Duration SHORT = Duration.ofSeconds(5);

  /** A piece of generated text. */
  public static Piece text(String name, String why, Duration limit, Callable<String> text) {
    return new Piece(name, why, limit, () -> text.call().getBytes(UTF_8));
  }

  /** A piece from files, as one char per byte; null if there are none. */
  public static Piece bytes(String name, String why, Callable<@Nullable String> bytes) {
    return new Piece(
        name,
        why,
        SHORT,
        () -> {
          String text = bytes.call();
          return text == null ? null : text.getBytes(ISO_8859_1);
        });
  }

  /** Replaces characters that are not allowed in the archive's file names. */
  public static String plain(Object text) {
    String plain = text.toString().replaceAll("[^A-Za-z0-9._-]", "_");
    return plain.substring(0, Math.min(60, plain.length()));
  }
}
