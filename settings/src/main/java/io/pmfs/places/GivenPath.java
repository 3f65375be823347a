package io.pmfs.places;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A path as a user gave it. */
public final class GivenPath {
  private static final Pattern URL = Pattern.compile("(?!file:)[a-zA-Z][a-zA-Z0-9+.-]*://.*");

  /** What a shell replaces outside of single quotes, other than the home directory's {@code ~/}. */
  private static final Pattern FOR_A_SHELL =
      Pattern.compile("^~(?!/)[^/]*|\\$(?:[A-Za-z_]\\w*|\\{[^}]*\\})");

  private GivenPath() {}

  /**
   * The absolute path; throws IllegalArgumentException with a message for the user if the text
   * still has a variable in it, unless a file really has that name.
   */
  public static Path of(String text, Surroundings surroundings) {
    Path path = surroundings.resolve(text);
    Matcher unreplaced = FOR_A_SHELL.matcher(text);
    if (unreplaced.find() && !Files.exists(path)) {
      String word = unreplaced.group();
      throw new IllegalArgumentException(
          "'%s': %s stands there literally; write the path itself%s"
              .formatted(text, word, word.startsWith("$") ? ", or double quotes in a shell" : ""));
    }
    return path;
  }

  /**
   * The absolute path of a dataset; throws IllegalArgumentException with a message for the user if
   * the text is a URL.
   */
  public static Path ofSource(String text, Surroundings surroundings) {
    if (URL.matcher(text).matches()) {
      throw new IllegalArgumentException(
          "'%s' is a URL, not a path; mount the store first (mount-s3, gcsfuse, rclone mount), then give its directory"
              .formatted(text));
    }
    return of(text, surroundings);
  }
}
