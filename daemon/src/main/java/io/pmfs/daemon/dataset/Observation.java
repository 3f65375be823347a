package io.pmfs.daemon.dataset;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import io.pmfs.daemon.metrics.History;
import io.pmfs.daemon.metrics.HttpContent;
import io.pmfs.daemon.metrics.HttpServer;
import io.pmfs.daemon.metrics.Metrics;
import io.pmfs.daemon.metrics.PageReport;
import io.pmfs.daemon.metrics.Snapshot;
import io.pmfs.daemon.metrics.WebPage;
import io.pmfs.daemon.process.DaemonLog;
import io.pmfs.daemon.process.RecentLog;
import io.pmfs.daemon.process.Version;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.posix.DaemonThread;
import io.pmfs.settings.MetricsAddress;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The observability of a mount: metrics on the control socket and, with {@code --metrics}, metrics,
 * status and a web page over TCP. Loads classes only at the first request. Thread-safe; close is
 * idempotent.
 */
@SuppressWarnings("FutureReturnValueIgnored")
public // the repeated task catches its exceptions
final class Observation implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Observation.class);
  private static final Duration CONNECTION_LIMIT = Duration.ofSeconds(20);
  private static final String JSON = "application/json; charset=utf-8";
  private static final Gson GSON = new GsonBuilder().serializeNulls().create();

  private final @Nullable MetricsAddress wanted;
  private final Supplier<Snapshot> snapshots;
  private final Supplier<StatusReport> status;
  private final InstantSource clock;
  private final String host;
  private @Nullable Metrics metrics; // GUARDED_BY(this)
  private volatile @Nullable HttpServer server;
  private volatile @Nullable Thread sampler;

  /**
   * Does not listen yet.
   *
   * @param wanted the TCP address; null for none
   * @param snapshots the source of metrics
   * @param status the answer of {@code /status}
   * @param host the name of this machine
   */
  public Observation(
      @Nullable MetricsAddress wanted,
      Supplier<Snapshot> snapshots,
      Supplier<StatusReport> status,
      InstantSource clock,
      String host) {
    this.wanted = wanted;
    this.snapshots = snapshots;
    this.status = status;
    this.clock = clock;
    this.host = host;
  }

  /**
   * Listens if there is an address.
   *
   * @param isInUse whether the mount is already in use, so that a failure is only logged
   */
  public void open(boolean isInUse) throws MountFailure {
    MetricsAddress address = wanted;
    if (address == null) {
      return;
    }
    try {
      listen(address, isInUse);
    } catch (MountFailure e) {
      if (!isInUse) {
        throw e;
      }
      log.warn("{}; continuing without it", e.line());
    }
  }

  private void listen(MetricsAddress address, boolean isInUse) throws MountFailure {
    History history = new History(status, clock);
    RecentLog recent = new RecentLog();
    PageReport.Heading heading =
        new PageReport.Heading(host, Version.withCommit(), clock.millis(), isInUse);
    Map<String, HttpContent> contents =
        Map.of(
            "/", WebPage.content(),
            "/metrics", new HttpContent(Metrics.CONTENT_TYPE, this::text),
            "/page",
                new HttpContent(
                    JSON, () -> GSON.toJson(heading.with(status.get(), clock.millis()))),
            "/status", new HttpContent(JSON, () -> GSON.toJson(status.get())),
            "/history", new HttpContent(JSON, () -> GSON.toJson(history.hour())),
            "/log", new HttpContent(JSON, () -> GSON.toJson(recent.lines())));
    try {
      InetAddress host = InetAddress.getByName(address.host());
      HttpServer listening =
          new HttpServer(new InetSocketAddress(host, address.port()), contents, CONNECTION_LIMIT);
      server = listening;
      log.info("metrics and web page at {}", url(listening));
    } catch (UnknownHostException e) {
      throw new MountFailure(
          ExitStatus.USAGE, "--metrics " + address + ": no such host; give an address", e);
    } catch (IOException e) {
      throw failure(address, e);
    }
    DaemonLog.add(recent);
    Thread started =
        DaemonThread.repeating("metrics-history", History.INTERVAL, () -> trySample(history));
    sampler = started;
    started.start();
  }

  private static void trySample(History history) {
    try {
      history.sample();
    } catch (RuntimeException e) {
      log.debug("no sample", e); // for example while the cluster closes
    }
  }

  static MountFailure failure(MetricsAddress address, IOException e) {
    String reason = Reason.of(e);
    return new MountFailure(
        ExitStatus.FAILED, "--metrics " + address + ": " + reason + "; " + remedy(reason), e);
  }

  private static String remedy(String reason) {
    if (reason.contains("assign")) {
      return "give one of this machine's addresses";
    }
    return reason.toLowerCase(Locale.ROOT).contains("denied")
        ? "only root may use ports below 1024: choose a port above 1023, or 0 for any free port"
        : "choose another port, or 0 for any free port";
  }

  /** The metrics in Prometheus's text format. */
  public synchronized String text() {
    Metrics ready = metrics;
    if (ready == null) {
      ready = new Metrics(Version.get(), Version.commit(), snapshots);
      metrics = ready;
    }
    return ready.text();
  }

  /** The URL of the web page; null if there is none. */
  @Nullable
  public String url() {
    HttpServer listening = server;
    return listening == null ? null : url(listening);
  }

  private static String url(HttpServer listening) {
    InetSocketAddress address = listening.address();
    return "http://"
        + MetricsAddress.text(address.getAddress().getHostAddress(), address.getPort())
        + "/";
  }

  @Override
  public void close() {
    HttpServer listening = server;
    if (listening != null) {
      listening.close();
    }
    Thread started = sampler;
    if (started != null) {
      started.interrupt();
    }
    synchronized (this) {
      if (metrics != null) {
        metrics.close();
        metrics = null;
      }
    }
  }
}
