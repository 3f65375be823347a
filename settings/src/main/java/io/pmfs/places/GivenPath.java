package io.pmfs.places;

import java.nio.file.Path;
import java.util.regex.Pattern;

/** A path as a user gave it. */
public final class GivenPath {
  private static final Pattern URL = Pattern.compile("(?!file:)[a-zA-Z][a-zA-Z0-9+.-]*://.*");

  private GivenPath() {}

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
    return surroundings.resolve(text);
  }
}
