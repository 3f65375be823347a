package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.common.hash.Hashing;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Headless Chromium, with one font, one time zone and a clock that runs ahead while a page waits,
 * so that two runs draw the same picture.
 */
final class Browser {
  private static final Path FONTS = Path.of("/usr/share/fonts/truetype/dejavu");
  private static final List<String> FONT_FILES = List.of("DejaVuSans.ttf", "DejaVuSans-Bold.ttf");

  private final Path profile;
  private final Path fontSettings;

  /**
   * Prepares Chromium, or skips the test if Chromium or a font is not installed.
   *
   * @param directory for its own files
   */
  Browser(Path directory) throws IOException {
    String remedy = "; scripts/install-requirements browser installs it";
    assumeTrue(Machine.onPath("chromium"), "no chromium" + remedy);
    for (String file : FONT_FILES) {
      assumeTrue(Files.exists(FONTS.resolve(file)), "no font " + FONTS.resolve(file) + remedy);
    }
    profile = directory.resolve("profile");
    Path fonts = Files.createDirectories(directory.resolve("fonts"));
    for (String file : FONT_FILES) {
      Files.copy(FONTS.resolve(file), fonts.resolve(file));
    }
    fontSettings = directory.resolve("fonts.conf");
    Files.writeString(
        fontSettings,
        """
        <?xml version="1.0"?>
        <!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
        <fontconfig><dir>%s</dir><cachedir>%s</cachedir></fontconfig>
        """
            .formatted(fonts, directory.resolve("font-cache")));
  }

  /** The fonts that it draws with, a line for each: its name and its SHA-256. */
  static List<String> fonts() throws IOException {
    List<String> lines = new ArrayList<>();
    for (String file : FONT_FILES) {
      byte[] content = Files.readAllBytes(FONTS.resolve(file));
      lines.add(file + " " + Hashing.sha256().hashBytes(content));
    }
    return lines;
  }

  static String version() {
    return Command.run("chromium", "--version").expect(0).out().strip();
  }

  /** The document of a page after some seconds, as HTML. */
  String document(String url, int width) {
    return browse("--dump-dom", "--window-size=" + width + ",1000", url);
  }

  /** Draws a page into a PNG file. */
  void draw(String url, int width, int height, boolean isDark, Path picture) {
    browse(
        "--screenshot=" + picture,
        "--window-size=" + width + "," + height,
        "--blink-settings=preferredColorScheme=" + (isDark ? 0 : 1),
        url);
    assertThat(picture).exists();
  }

  private String browse(String... arguments) {
    List<String> line =
        new ArrayList<>(
            List.of(
                "chromium",
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-lcd-text",
                "--font-render-hinting=none",
                "--force-device-scale-factor=1",
                "--hide-scrollbars",
                "--user-data-dir=" + profile,
                "--virtual-time-budget=9000"));
    line.addAll(List.of(arguments));
    Map<String, String> environment =
        Map.of(
            "FONTCONFIG_FILE", fontSettings.toString(), "TZ", "Europe/Berlin", "LANG", "C.UTF-8");
    return Command.run(environment, Command.DEADLINE, line).expect(0).out();
  }
}
