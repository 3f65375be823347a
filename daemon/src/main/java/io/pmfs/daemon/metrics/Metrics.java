package io.pmfs.daemon.metrics;

import com.google.common.base.Suppliers;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.jvm.ClassLoaderMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmGcMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.FileDescriptorMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.core.instrument.binder.system.UptimeMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.pmfs.cluster.ClusterStatus;
import io.pmfs.fs.PmfsFileSystem.ReadStatistics;
import io.pmfs.stage.ReadOrigins;
import io.pmfs.stage.StagerStatus;
import io.pmfs.tier.SourceOperations;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierStatus;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;

/**
 * The metrics of one mount in the text format of Prometheus; docs/metrics.md lists them. Counts
 * nothing itself: it reads what the parts of the mount count anyway. Safe for use by many threads.
 */
public final class Metrics implements AutoCloseable {
  /** Of Prometheus's text format; what {@link #text} is. */
  public static final String CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

  /** The values of one answer belong together, and are asked for once. */
  private static final long SAME_ANSWER_MS = 200;

  private final PrometheusMeterRegistry registry =
      new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
  private final JvmGcMetrics collections = new JvmGcMetrics();
  private final Sources sources;

  public Metrics(Sources sources) {
    this.sources = sources;
    Tags common = Tags.of("dataset", sources.dataset(), "mountpoint", sources.mountpoint());
    registry.config().commonTags(common);
    reads();
    for (int i = 0; i < sources.copies().tiers().size(); i++) {
      tier(sources.copies().tiers().get(i), i);
    }
    source();
    staging();
    Supplier<ClusterStatus> cluster = sources.cluster();
    if (cluster != null) {
      cluster(cluster);
    }
    process();
    registry.getPrometheusRegistry().register(new RequestDurations(sources));
  }

  /** The present values. */
  public String text() {
    return registry.scrape(CONTENT_TYPE);
  }

  private void reads() {
    Supplier<ReadStatistics> reads = once(sources.fileSystem()::readStatistics);
    count("pmfs.reads", "Reads of applications that reached the daemon", reads, r -> r.requests());
    count("pmfs.read.bytes", "Bytes that readers got", reads, r -> r.bytes());
    count("pmfs.read.errors", "Reads answered with an error", reads, r -> r.errors());
    Supplier<ReadOrigins> origins = once(sources.stager()::readOrigins);
    count(
        "pmfs.fetched.reads",
        "Reads answered by what was read from the source, or a peer, a moment before",
        origins,
        o -> o.fetched().reads());
    count(
        "pmfs.fetched.bytes",
        "Bytes of reads that this answered",
        origins,
        o -> o.fetched().bytes());
    count(
        "pmfs.misses",
        "Reads that waited for the source, or for a peer",
        origins,
        o -> o.source().reads());
    count(
        "pmfs.miss.bytes",
        "Bytes of reads that waited for the source, or for a peer",
        origins,
        o -> o.source().bytes());
    count(
        "pmfs.passthrough.opens",
        "Opens after which the kernel reads the copy's file by itself",
        sources::bridge,
        b -> b.opensLeftToKernel());
    Supplier<Sources.Waits> waits = once(sources.waits());
    Tags none = Tags.empty();
    gauge(
        "pmfs.state.recording",
        "",
        "1 while names and copies are recorded for the next mount, 0 while that fails",
        none,
        sources::isRecording,
        recording -> recording.getAsBoolean() ? 1 : 0);
    gauge(
        "pmfs.waiting.requests",
        "",
        "Requests of the kernel that have waited for a second or longer and have no answer yet",
        none,
        waits,
        Sources.Waits::requests);
    gauge(
        "pmfs.waiting.longest",
        "seconds",
        "How long the longest of these has waited",
        none,
        waits,
        Sources.Waits::longestSeconds);
  }

  private void tier(Tier tier, int index) {
    Tags tags = Tags.of("tier", tier.name());
    Supplier<ReadOrigins> origins = once(sources.stager()::readOrigins);
    Supplier<TierStatus> status = once(tier::status);
    Supplier<Tier> itself = () -> tier;
    count(
        "pmfs.tier.hits",
        "Reads that whole copies of the tier answered",
        tags,
        origins,
        o -> o.tiers().get(index).reads());
    count(
        "pmfs.tier.misses",
        "Reads that the tier could not answer, so that a later place did",
        tags,
        origins,
        o -> o.misses(index));
    count(
        "pmfs.tier.read.bytes",
        "Bytes that whole copies of the tier answered",
        tags,
        origins,
        o -> o.tiers().get(index).bytes());
    count(
        "pmfs.tier.evictions",
        "Copies removed to make room",
        tags,
        itself,
        t -> sources.stager().evicted(t));
    count(
        "pmfs.tier.mismatches",
        "Copies dropped because they were not what was recorded",
        tags,
        itself,
        t -> sources.copies().mismatches(t));
    count("pmfs.tier.errors", "Failed reads and writes of the tier", tags, itself, Tier::errors);
    gauge(
        "pmfs.tier.capacity",
        "bytes",
        "What copies may take",
        tags,
        status,
        TierStatus::capacityBytes);
    gauge("pmfs.tier.used", "bytes", "What copies take", tags, status, TierStatus::usedBytes);
    gauge("pmfs.tier.copies", "", "Copies that the tier holds", tags, status, TierStatus::copies);
    gauge(
        "pmfs.tier.up",
        "",
        "1 while the tier serves copies, 0 once it has failed",
        tags,
        status,
        s -> s.state() == TierStatus.State.FAILED ? 0 : 1);
    gauge(
        "pmfs.tier.full",
        "",
        "1 while the disk of the tier has no room, else 0",
        tags,
        status,
        s -> s.state() == TierStatus.State.FULL ? 1 : 0);
  }

  private void source() {
    Supplier<SourceOperations> operations = once(sources.source()::operations);
    operation("open", operations, SourceOperations::opens);
    operation("read", operations, SourceOperations::reads);
    operation("stat", operations, SourceOperations::stats);
    operation("list", operations, SourceOperations::lists);
    operation("readlink", operations, SourceOperations::readlinks);
    operation("xattr", operations, SourceOperations::xattrs);
    operation("statfs", operations, SourceOperations::statfs);
    operation("seek", operations, SourceOperations::seeks);
    count(
        "pmfs.source.read.bytes",
        "Bytes of contents read from the source, for readers and for copies",
        operations,
        SourceOperations::bytes);
    count(
        "pmfs.source.errors",
        "Requests to the source that failed, not counting that something is not there",
        sources::source,
        s -> s.errors());
  }

  private void operation(
      String kind,
      Supplier<SourceOperations> operations,
      ToDoubleFunction<SourceOperations> value) {
    count(
        "pmfs.source.operations",
        "Requests to the source by kind",
        Tags.of("kind", kind),
        operations,
        value);
  }

  private void staging() {
    Supplier<StagerStatus> staging = once(sources.stager()::status);
    Tags none = Tags.empty();
    gauge(
        "pmfs.staging.active.files", "", "Files being copied", none, staging, StagerStatus::active);
    gauge(
        "pmfs.staging.queued.files",
        "",
        "Files that wait for a thread to copy them",
        none,
        staging,
        StagerStatus::queued);
    count("pmfs.staging.completed", "Copies made", staging, StagerStatus::completed);
    count("pmfs.staging.failed", "Copies given up", staging, StagerStatus::failed);
    count(
        "pmfs.staging.dropped",
        "Files not copied because the queue was full",
        staging,
        StagerStatus::dropped);
    count(
        "pmfs.staging.no.room",
        "Files for which no tier had room when they were asked for",
        staging,
        StagerStatus::skippedNoRoom);
    count(
        "pmfs.copies.verified",
        "Copies whose checksums were compared and matched",
        sources::copies,
        c -> c.verified());
    Supplier<Sources.TaskCounts> task =
        once(() -> Objects.requireNonNullElse(sources.task().get(), Sources.TaskCounts.NONE));
    gauge(
        "pmfs.task.running",
        "",
        "1 while a task (stage, prefetch, verify, …) runs",
        none,
        task,
        t -> t.isRunning() ? 1 : 0);
    gauge(
        "pmfs.task.files",
        "",
        "Files that the running or last task is done with",
        none,
        task,
        Sources.TaskCounts::files);
    gauge(
        "pmfs.task.expected.files",
        "",
        "Files that it has to look at, as far as known",
        none,
        task,
        Sources.TaskCounts::totalFiles);
    gauge(
        "pmfs.task.done",
        "bytes",
        "Bytes that it is done with",
        none,
        task,
        Sources.TaskCounts::bytes);
    gauge(
        "pmfs.task.expected",
        "bytes",
        "Bytes that it has to look at, as far as known",
        none,
        task,
        Sources.TaskCounts::totalBytes);
    gauge(
        "pmfs.task.failed.files",
        "",
        "Files and paths with which something is the matter",
        none,
        task,
        Sources.TaskCounts::failed);
  }

  private void cluster(Supplier<ClusterStatus> asked) {
    Supplier<ClusterStatus> cluster = once(asked);
    Tags none = Tags.empty();
    gauge(
        "pmfs.cluster.members",
        "",
        "Nodes of the cluster, this one included",
        none,
        cluster,
        c -> c.members().size());
    gauge(
        "pmfs.cluster.suspected.members",
        "",
        "Nodes that are not asked for a while, because they failed",
        none,
        cluster,
        c -> c.members().stream().filter(ClusterStatus.MemberStatus::isSuspected).count());
    gauge(
        "pmfs.cluster.share",
        "ratio",
        "The part of the files that this node holds for all",
        none,
        cluster,
        c ->
            c.members().stream()
                .filter(ClusterStatus.MemberStatus::isSelf)
                .mapToDouble(ClusterStatus.MemberStatus::share)
                .sum());
    count("pmfs.peer.hits", "Questions that peers answered", cluster, ClusterStatus::answers);
    count(
        "pmfs.peer.misses",
        "Questions to peers that went on to the next or to the source",
        cluster,
        ClusterStatus::misses);
    count(
        "pmfs.peer.read.bytes",
        "Bytes of contents that came from peers",
        cluster,
        ClusterStatus::bytesFromPeers);
    count(
        "pmfs.peer.served.requests",
        "Requests of peers that were answered or refused",
        cluster,
        c -> c.serves().requests());
    count(
        "pmfs.peer.served.bytes",
        "Bytes of contents sent to peers",
        cluster,
        c -> c.serves().bytes());
    count(
        "pmfs.peer.served.refused",
        "Requests and connections of peers that were refused",
        cluster,
        c -> c.serves().refused().values().stream().mapToLong(Long::longValue).sum());
    count(
        "pmfs.peer.served.failed",
        "Answers to peers that broke off",
        cluster,
        c -> c.serves().failed());
  }

  private void process() {
    gauge(
        "pmfs.info",
        "",
        "1; its labels say what runs",
        Tags.of("version", sources.version(), "bridge", sources.bridge().name()),
        () -> 1,
        one -> one);
    gauge(
        "pmfs.resident.memory",
        "bytes",
        "Memory of the daemon, as the kernel counts it",
        Tags.empty(),
        () -> ProcessMemory.residentBytes(),
        bytes -> bytes);
    List.of(
            new JvmMemoryMetrics(),
            collections,
            new JvmThreadMetrics(),
            new ClassLoaderMetrics(),
            new ProcessorMetrics(),
            new FileDescriptorMetrics(),
            new UptimeMetrics())
        .forEach(binder -> binder.bindTo(registry));
  }

  private static <T> Supplier<T> once(Supplier<T> asked) {
    return Suppliers.memoizeWithExpiration(asked::get, SAME_ANSWER_MS, TimeUnit.MILLISECONDS);
  }

  private <T> void count(String name, String help, Supplier<T> from, ToDoubleFunction<T> value) {
    count(name, help, Tags.empty(), from, value);
  }

  private <T> void count(
      String name, String help, Tags tags, Supplier<T> from, ToDoubleFunction<T> value) {
    // What it is given it holds weakly, what it calls it holds.
    FunctionCounter.builder(name, this, self -> value.applyAsDouble(from.get()))
        .description(help)
        .tags(tags)
        .register(registry);
  }

  private <T> void gauge(
      String name,
      String unit,
      String help,
      Tags tags,
      Supplier<T> from,
      ToDoubleFunction<T> value) {
    Gauge.builder(name, from, supplier -> value.applyAsDouble(supplier.get()))
        .description(help)
        .baseUnit(unit.isEmpty() ? null : unit)
        .tags(tags)
        .strongReference(true)
        .register(registry);
  }

  @Override
  public void close() {
    collections.close();
    registry.close();
  }
}
