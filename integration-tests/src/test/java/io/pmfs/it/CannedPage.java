package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.io.Resources;
import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.pmfs.daemon.metrics.History;
import io.pmfs.daemon.metrics.HttpContent;
import io.pmfs.daemon.metrics.HttpServer;
import io.pmfs.daemon.metrics.WebPage;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The daemon's web page, from the daemon's server, with figures that never change: of a mount that
 * was filled for a minute, not read for half a minute, and read again until now.
 */
final class CannedPage implements AutoCloseable {
  private static final Gson GSON = new Gson();
  private static final long MIB = 1 << 20;

  /** A window of Chromium cannot be that narrow. */
  private static final String NARROW =
      "<!doctype html><iframe src=widths width=360 height=3000 frameborder=0></iframe>";

  private final Map<String, HttpContent> contents = new HashMap<>();
  private final HttpServer server;

  private CannedPage(Callable<String> page, String history) throws IOException {
    contents.put("/", WebPage.content());
    contents.put("/page", new HttpContent("application/json", page));
    contents.put("/history", new HttpContent("application/json", () -> history));
    contents.put("/log", new HttpContent("application/json", () -> text("log.json")));
    contents.put("/facts", new HttpContent("text/html", () -> with(text("units.js"))));
    contents.put("/narrow", new HttpContent("text/html", () -> NARROW));
    contents.put("/widths", new HttpContent("text/html", () -> with(text("widths.js"))));
    server =
        new HttpServer(
            new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
            contents,
            Duration.ofSeconds(30));
  }

  /** A mount that is read. */
  static CannedPage ofReadMount() throws IOException {
    JsonObject now = page();
    JsonObject before = earlier(now);
    AtomicInteger turn = new AtomicInteger();
    return new CannedPage(
        () -> GSON.toJson(turn.getAndIncrement() == 0 ? before : now), history(now, true));
  }

  /** A mount without any read so far. */
  static CannedPage ofUnreadMount() throws IOException {
    JsonObject now = page();
    now.addProperty("verdict", "not read yet: nothing was read");
    now.getAsJsonObject("status").getAsJsonObject("engagement").addProperty("state", "unread");
    JsonObject reads = now.getAsJsonObject("status").getAsJsonObject("reads");
    reads.keySet().forEach(name -> reads.addProperty(name, 0));
    JsonObject before = now.deepCopy();
    before.addProperty("timeMillis", now.get("timeMillis").getAsLong() - 2500);
    AtomicInteger turn = new AtomicInteger();
    return new CannedPage(
        () -> GSON.toJson(turn.getAndIncrement() == 0 ? before : now), history(now, false));
  }

  /** A mount whose daemon answers once and then no more. */
  static CannedPage ofLostDaemon() throws IOException {
    JsonObject now = page();
    AtomicInteger turn = new AtomicInteger();
    return new CannedPage(
        () -> {
          if (turn.getAndIncrement() > 0) {
            throw new IllegalStateException("gone");
          }
          return GSON.toJson(now);
        },
        history(now, true));
  }

  static JsonObject page() throws IOException {
    return JsonParser.parseString(text("page.json")).getAsJsonObject();
  }

  private static JsonObject earlier(JsonObject now) {
    JsonObject before = now.deepCopy();
    subtract(before, "timeMillis", 2500);
    JsonObject status = before.getAsJsonObject("status");
    JsonObject reads = status.getAsJsonObject("reads");
    subtract(reads, "requests", 8000);
    subtract(reads, "bytes", 1000 * MIB);
    subtract(reads, "fromTiers", 880 * MIB);
    subtract(reads, "fromSource", 120 * MIB);
    subtract(status.getAsJsonObject("sourceOperations"), "total", 480);
    for (var operation : status.getAsJsonObject("requests").getAsJsonArray("operations")) {
      var buckets = operation.getAsJsonObject().getAsJsonArray("buckets");
      for (int i = 0; i < buckets.size(); i++) {
        long count = buckets.get(i).getAsLong();
        buckets.set(i, GSON.toJsonTree(count - count / 50));
      }
    }
    return before;
  }

  private static void subtract(JsonObject object, String name, long amount) {
    object.addProperty(name, object.get(name).getAsLong() - amount);
  }

  private static String history(JsonObject page, boolean isRead) {
    long since = page.get("sinceMillis").getAsLong();
    long end = page.get("timeMillis").getAsLong();
    List<History.Sample> samples = new ArrayList<>();
    long fast = 0;
    long slow = 0;
    long fetched = 0;
    long missed = 0;
    for (long time = since; time <= end; time += 1000) {
      long seconds = (time - since) / 1000;
      if (seconds % 5 == 0 || time == end) {
        samples.add(
            new History.Sample(
                time, 0, 0, List.of(fast * MIB, slow * MIB), fetched * MIB, missed * MIB, 0, 0));
      }
      if (isRead && seconds < 60) {
        fetched += 200 + seconds * 2;
        missed += 90 - seconds;
      } else if (isRead && seconds >= 90) {
        fast += 380 + 8 * (seconds % 20);
        slow += 140 - 4 * (seconds % 15);
        missed += 4 * (seconds % 10);
      }
    }
    return GSON.toJson(
        new History.Hour(5000, List.of("pm:/mnt/pmem0/pmfs", "ssd:/local/pmfs"), samples));
  }

  /** The page with a second script, which the policy of the page itself would not let run. */
  private static String with(String script) throws Exception {
    return WebPage.content()
        .body()
        .call()
        .replace("</body>", "<script>" + script + "</script></body>");
  }

  private static String text(String name) throws IOException {
    return Resources.toString(Resources.getResource("page/" + name), UTF_8);
  }

  String url() {
    return "http://127.0.0.1:" + server.address().getPort() + "/";
  }

  @Override
  public void close() {
    server.close();
  }
}
