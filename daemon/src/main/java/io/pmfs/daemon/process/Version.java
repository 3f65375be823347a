package io.pmfs.daemon.process;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.io.UncheckedIOException;
import java.util.Properties;
import org.jspecify.annotations.Nullable;

/** The version of this build. */
public final class Version {
  private Version() {}

  public static String get() {
    Properties properties = new Properties();
    try {
      properties.load(new StringReader(text("version.properties")));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return properties.getProperty("version", "unknown");
  }

  /**
   * The commit that was built, such as {@code 5f4f736}, or {@code 5f4f736-dirty} if files differed
   * from it; null if it is not known. See scripts/commit.
   */
  public static @Nullable String commit() {
    return commitIn(text("commit"));
  }

  /** For people: the version, and the commit if it is known. */
  public static String withCommit() {
    String commit = commit();
    return commit == null ? get() : get() + " (" + commit + ")";
  }

  static @Nullable String commitIn(String text) {
    String commit = text.strip();
    return commit.matches("[0-9a-f]{7}(-dirty)?") ? commit : null;
  }

  private static String text(String name) {
    try (InputStream in = Version.class.getResourceAsStream(name)) {
      return in == null ? "" : new String(in.readAllBytes(), UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
