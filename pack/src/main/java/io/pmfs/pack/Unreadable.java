package io.pmfs.pack;

import io.pmfs.posix.FsException;

/**
 * Something in the source that could not be packed, and why.
 *
 * @param path for messages: bytes that are not UTF-8 are replaced
 */
public record Unreadable(String path, String reason) {
  static Unreadable of(Object path, FsException e) {
    String text = path.toString();
    String message = String.valueOf(e.getMessage());
    String own = e.errno() + ": " + text + ": ";
    return new Unreadable(
        text.isEmpty() ? "." : text,
        message.startsWith(own) ? message.substring(own.length()) : e.errno().toString());
  }
}
