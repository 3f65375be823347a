package io.pmfs.it;

import static java.nio.file.StandardCopyOption.REPLACE_EXISTING;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import io.pmfs.daemon.metrics.PageReport;
import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.imageio.ImageIO;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The page that {@code --metrics} answers, in a browser. Pictures are compared with those in
 * src/test/resources/page; {@code -Dpmfs.page=record} replaces those instead.
 */
@OnRequest(value = "browser", what = "the web page in a browser")
final class WebPageIT {
  private static final String HOSTILE = "<img src=x onerror=document.title='owned'><b>&amp;";
  private static final Path STORED = Path.of("src", "test", "resources", "page").toAbsolutePath();
  private static final Path DRAWN_WITH = STORED.resolve("drawn-with.txt");

  /** What another release of the browser may draw otherwise; one on this machine draws the same. */
  private static final double MOST_PERCENT = 0.5;

  private static final double MOST_PERCENT_OF_A_SQUARE = 8;

  private static final boolean IS_RECORDING = "record".equals(System.getProperty("pmfs.page"));

  @Installed private Installation pmfs;
  private Browser browser;

  @BeforeEach
  void requireBrowser() throws IOException {
    browser = new Browser(pmfs.directory("browser"));
  }

  /** What a reader of the page gets: the document without its head and script. */
  private String body(String url, int width) {
    String document = browser.document(url, width);
    assertThat(document).doesNotContain("<title>owned");
    return document.substring(document.indexOf("<body"), document.indexOf("<script"));
  }

  @Test
  void page_ofAMount_showsItAndIsNotTakenInByItsNames() throws IOException {
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
      String page = body(url, 1280);
      String[] status =
          pmfs.run("status", mount.mountpoint().toString()).expect(0).out().split("\n", -1);
      String version = pmfs.run("--version").expect(0).out().strip().replace("pmfs ", "");
      String host = Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();

      assertThat(page)
          .contains("filling", "3.8 MiB", "lookup", "&lt;img src=x onerror=", "20 copies")
          .contains(mount.mountpoint().toString(), version, host.split("\\.", -1)[0])
          .contains("mounted since")
          .containsPattern("<path[^>]* d=\"M")
          .doesNotContain("<img", "NaN", "undefined", "Infinity");
      String[] verdict = status[1].strip().split(": ", 2);
      assertThat(page).contains(">" + verdict[0] + "<", verdict[1].substring(0, 40));
    }
  }

  @Test
  void cannedPage_hasTheFormOfThePage() throws IOException {
    Gson gson = new GsonBuilder().serializeNulls().create();
    JsonObject canned = CannedPage.page();

    assertThat(gson.toJsonTree(gson.fromJson(canned, PageReport.class))).isEqualTo(canned);
  }

  @Test
  void script_hasTheseFacts() throws IOException {
    try (CannedPage page = CannedPage.ofReadMount()) {
      String document = browser.document(page.url() + "facts", 1280);

      assertThat(part(document, "<pre id=\"facts\">", "</pre>"))
          .containsPattern("\\d{2,} facts, 0 wrong");
    }
  }

  @Test
  void figures_ofAReadMount_haveOneUnitAndGaps() throws IOException {
    try (CannedPage page = CannedPage.ofReadMount()) {
      String body = body(page.url(), 1280);
      String throughput = part(body, "<svg id=\"throughput\"", "<svg id=\"share\"");
      String share = part(body, "<svg id=\"share\"", "id=\"tiers\"");

      assertThat(throughput)
          .contains(">MiB/s<", ">0<", ">200<", ">11:15<", ">11:17<", "time of day, CET<")
          .doesNotContain("GiB", "KiB", " B/s")
          .containsPattern("<b>[0-9.]+ MiB/s</b>");
      // It was read for a minute, then not for half a minute, and then until now.
      Matcher outline =
          Pattern.compile("<path d=\"([^\"]*)\" style=\"fill: var\\(--source\\)").matcher(share);
      assertThat(outline.find()).isTrue();
      assertThat(outline.group(1)).containsPattern("^M[^M]*M[^M]*$");
      assertThat(body).contains("before the start", "mounted since", "2 Mar 2026, 11:15:00 CET");
    }
  }

  @Test
  void figures_ofAnUnreadMount_areNotZeroPercent() throws IOException {
    try (CannedPage page = CannedPage.ofUnreadMount()) {
      String body = body(page.url(), 1280);

      assertThat(body)
          .contains(
              ">nothing read<",
              "nothing read since the start",
              "No read reached the daemon in this time.")
          .contains("no reads from 11:17:30 to 11:17:32");
      assertThat(part(body, "<svg id=\"share\"", "id=\"tiers\"")).doesNotContain("0 %", "<path");
    }
  }

  @Test
  void page_whoseDaemonIsGone_saysHowOldItsFiguresAre() throws IOException {
    try (CannedPage page = CannedPage.ofLostDaemon()) {
      assertThat(body(page.url(), 1280))
          .contains("The daemon does not answer: these figures are of 2 Mar 2026, 11:17:32 CET.<");
    }
  }

  @Test
  void page_of360Pixels_fitsAndHasItsValuesInTheFirstSecond() throws IOException {
    try (CannedPage page = CannedPage.ofReadMount()) {
      assertThat(browser.document(page.url() + "narrow", 1280))
          .contains("data-widths=\"360 of 360; too wide: none\"")
          .contains("data-cards=\"5 of 5, 0 px from the edge\"");
    }
  }

  private static String part(String text, String from, String to) {
    assertThat(text).contains(from, to);
    int begin = text.indexOf(from);
    return text.substring(begin, text.indexOf(to, begin));
  }

  @ParameterizedTest
  @CsvSource({"1280, 1360", "390, 3000"})
  void picture_inBothSchemes_isTheStoredOne(int width, int height) throws IOException {
    if (!IS_RECORDING) {
      assertThat(Files.readAllLines(DRAWN_WITH))
          .as("fonts of the stored pictures: with others, they cannot be compared (%s)", remedy())
          .containsAll(Browser.fonts());
    }
    List<String> problems = new ArrayList<>();
    for (String scheme : List.of("light", "dark")) {
      String problem = compare(scheme + "-" + width, width, height, scheme.equals("dark"));
      if (problem != null) {
        problems.add(problem);
      }
    }
    assertThat(problems).isEmpty();
  }

  /** Null if the page looks as stored, else what to look at. */
  private @Nullable String compare(String name, int width, int height, boolean isDark)
      throws IOException {
    Path place = Files.createDirectories(Path.of("target", "page").toAbsolutePath());
    Path actual = place.resolve(name + "-actual.png");
    try (CannedPage page = CannedPage.ofReadMount()) {
      browser.draw(page.url(), width, height, isDark, actual);
    }
    Path stored = STORED.resolve(name + ".png");
    if (IS_RECORDING) {
      Files.copy(actual, stored, REPLACE_EXISTING);
      List<String> lines = new ArrayList<>(Browser.fonts());
      lines.add(Browser.version());
      Files.write(DRAWN_WITH, lines);
      return null;
    }
    Path expected = Files.copy(stored, place.resolve(name + "-expected.png"), REPLACE_EXISTING);
    PictureComparison comparison =
        PictureComparison.of(ImageIO.read(expected.toFile()), ImageIO.read(actual.toFile()));
    Path difference = place.resolve(name + "-diff.png");
    ImageIO.write(comparison.difference(), "png", difference.toFile());
    if (comparison.percent() <= MOST_PERCENT
        && comparison.worstPercent() <= MOST_PERCENT_OF_A_SQUARE) {
      return null;
    }
    return String.format(
        Locale.ROOT,
        "%.2f %% of the pixels differ, and %.0f %% of the worst square; compare%n%s"
            + " with%n%s:%n%s%n%s",
        comparison.percent(),
        comparison.worstPercent(),
        actual,
        expected,
        difference,
        remedy());
  }

  private static String remedy() throws IOException {
    return "stored pictures: "
        + Files.readAllLines(DRAWN_WITH)
        + "; here: "
        + Browser.fonts()
        + ", "
        + Browser.version()
        + "; if the page is as it should be, record it with -Dpmfs.page=record";
  }
}
