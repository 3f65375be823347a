package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.awt.image.BufferedImage;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** The page that {@code --metrics} answers, in a browser. Its screenshots are in target/page. */
@EnabledIfSystemProperty(
    named = "pmfs.browser",
    matches = "all",
    disabledReason = "the web page in a browser; -Dpmfs.browser=all runs it")
final class WebPageIT {
  private static final String HOSTILE = "<img src=x onerror=document.title='owned'><b>&amp;";

  @Installed private Installation pmfs;

  @BeforeEach
  void requireBrowser() {
    assumeTrue(
        Machine.onPath("chromium"),
        "no chromium: scripts/install-requirements browser installs it");
  }

  private Command browse(String... arguments) {
    List<String> line =
        new ArrayList<>(
            List.of(
                "chromium",
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--user-data-dir=" + pmfs.directory("browser"),
                "--virtual-time-budget=9000"));
    line.addAll(List.of(arguments));
    return Command.run(line.toArray(String[]::new));
  }

  @Test
  void page_inABrowser_showsTheMountAndIsNotTakenInByItsNames() throws IOException {
    Path source = Files.createDirectory(pmfs.scratch().root().resolve(HOSTILE));
    for (int i = 0; i < 20; i++) {
      Files.write(source.resolve("f" + i), new byte[200_000]);
    }
    try (MountedPmfs mount = pmfs.mount(source, "--metrics", "0", "--read-mode", "page-cache")) {
      for (int i = 0; i < 20; i++) {
        Files.readAllBytes(mount.mountpoint().resolve("f" + i));
      }
      String url = mount.awaitCopies(20).text("metrics");
      // The browser's time is not the daemon's, whose first points come within ten seconds.
      Await.until(
          "points to draw",
          Duration.ofSeconds(60),
          () -> mount.status().number("uptimeSeconds") >= 12);
      String seen = browse("--dump-dom", url).expect(0).out();
      String page = seen.substring(seen.indexOf("<body"), seen.indexOf("<script"));

      assertThat(page)
          .contains("filling", "3.8 MiB", "lookup", "&lt;img src=x onerror=")
          .doesNotContain("<img", "NaN", "undefined", "Infinity");
      assertThat(seen).doesNotContain("<title>owned");
      assertThat(page).contains("20 copies").containsPattern("<path[^>]* d=\"M");
      screenshots(url);
    }
  }

  private void screenshots(String url) throws IOException {
    Path place = Files.createDirectories(Path.of("target", "page").toAbsolutePath());
    for (String size : List.of("1280,1100", "400,1900")) {
      for (String scheme : List.of("0", "1")) {
        Path picture =
            place.resolve(
                (scheme.equals("0") ? "dark-" : "light-") + size.replaceAll(",.*", "") + ".png");
        browse(
                "--screenshot=" + picture,
                "--window-size=" + size,
                "--blink-settings=preferredColorScheme=" + scheme,
                url)
            .expect(0);
        assertShows(picture, Integer.parseInt(size.replaceAll(",.*", "")), scheme.equals("0"));
      }
    }
  }

  /** A picture of the width that was asked for, in its scheme, with something to see all over. */
  private static void assertShows(Path picture, int width, boolean isDark) throws IOException {
    BufferedImage image = ImageIO.read(picture.toFile());
    assertThat(image.getWidth()).as("width of %s", picture).isEqualTo(width);
    int background = image.getRGB(1, 1);
    if (isDark) {
      assertThat(brightness(background)).as("brightness of %s", picture).isLessThan(80);
    } else {
      assertThat(brightness(background)).as("brightness of %s", picture).isGreaterThan(200);
    }
    int half = image.getHeight() / 2;
    assertThat(shareOtherThan(background, image, 0, half))
        .as("%s, above", picture)
        .isGreaterThan(2);
    assertThat(shareOtherThan(background, image, half, image.getHeight()))
        .as("%s, below", picture)
        .isGreaterThan(2);
  }

  /** 0 to 255. */
  private static int brightness(int rgb) {
    return ((rgb >> 16 & 255) + (rgb >> 8 & 255) + (rgb & 255)) / 3;
  }

  /** Percent of the pixels in some rows that are not of the background's colour. */
  private static double shareOtherThan(int background, BufferedImage image, int from, int to) {
    long others = 0;
    for (int y = from; y < to; y++) {
      for (int x = 0; x < image.getWidth(); x++) {
        others += image.getRGB(x, y) == background ? 0 : 1;
      }
    }
    return 100.0 * others / image.getWidth() / (to - from);
  }
}
