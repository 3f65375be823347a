package io.pmfs.distribution;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Files of the checkout; Maven runs the tests of a module in its directory. */
final class Repository {
  private Repository() {}

  static String configuration() {
    return text("../docs/configuration.md");
  }

  static String helper() {
    return text("src/main/manual/mount.pmfs.8");
  }

  private static String text(String path) {
    try {
      return Files.readString(Path.of(path), UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
