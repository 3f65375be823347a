package io.pmfs.cluster.members;

import java.io.ObjectInputFilter;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.infinispan.AdvancedCache;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.configuration.global.ShutdownHookBehavior;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.partitionhandling.PartitionHandling;
import org.infinispan.remoting.transport.Address;
import org.infinispan.remoting.transport.Transport;
import org.infinispan.remoting.transport.jgroups.JGroupsTransport;
import org.jgroups.JChannel;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Membership by a JGroups group in which an Infinispan cache, replicated on every member, holds the
 * members' announcements. The view contains the nodes that are in the group and have announced
 * themselves.
 */
public final class InfinispanMembership implements Membership {
  private static final Logger log = LoggerFactory.getLogger(InfinispanMembership.class);

  private static final String CACHE = "members";
  private static final Duration CACHE_TIMEOUT = Duration.ofSeconds(10);
  private static final Duration TOPOLOGY_TIMEOUT = Duration.ofSeconds(30);
  private static final Duration LEAVE_TIMEOUT = Duration.ofSeconds(10);
  private static final Duration GOODBYE_TIMEOUT = Duration.ofSeconds(2);
  private static final Duration MAX_RETRY_DELAY = Duration.ofSeconds(30);

  private final ClusterSettings settings;
  private final Member self;
  private final List<Consumer<View>> listeners = new CopyOnWriteArrayList<>();

  /** Joins the group, updates the view and calls the listeners, one after another. */
  private final ScheduledThreadPoolExecutor worker;

  private final CountDownLatch joined = new CountDownLatch(1);
  private final AtomicBoolean closed = new AtomicBoolean();
  private volatile View view;
  private volatile List<Member> farewells = List.of();

  /** Whether the worker is about to update the view. */
  private final AtomicBoolean isLookDue = new AtomicBoolean();

  /** What this node waits for until it has joined, for people. */
  private volatile String awaited = "the group";

  // Only the worker uses these.
  private @Nullable JChannel channel;
  private @Nullable DefaultCacheManager manager;
  private @Nullable Announcements announcements;
  private Duration retryDelay = Duration.ofSeconds(1);
  private long nextStartNanos = System.nanoTime();

  /** Whether all listeners have the view; one that throws gets it again, with the others. */
  private boolean isDelivered = true;

  private InfinispanMembership(ClusterSettings settings, Member self) {
    this.settings = settings;
    this.self = self;
    view = new View(List.of(self));
    worker =
        new ScheduledThreadPoolExecutor(
            1,
            task -> {
              Thread thread = new Thread(task, "members");
              thread.setDaemon(true);
              return thread;
            });
  }

  /**
   * Joins the cluster, or becomes its first member. From then on the whole process refuses
   * serialized Java objects, unless it already has a filter for them.
   *
   * @param patience how long to wait until this node is in the group and knows the other members;
   *     joining continues in the background
   * @throws IllegalArgumentException with a one-line message, if the settings can never work
   */
  public static InfinispanMembership join(ClusterSettings settings, Member self, Duration patience)
      throws InterruptedException {
    if (!GroupChannel.isThisMachines(settings.address())) {
      throw new IllegalArgumentException(
          "cluster "
              + settings.name()
              + ": "
              + settings.address().getHostAddress()
              + " is not an address of this machine");
    }
    refuseSerializedObjects();
    InfinispanMembership membership = new InfinispanMembership(settings, self);
    membership.begin();
    if (!membership.joined.await(patience.toMillis(), TimeUnit.MILLISECONDS)) {
      log.warn(
          "cluster {}: not joined yet, waits for {}; still trying in the background",
          settings.name(),
          membership.awaited);
    }
    return membership;
  }

  /** No pmfs node sends serialized objects, but JGroups would read them. */
  private static void refuseSerializedObjects() {
    try {
      if (ObjectInputFilter.Config.getSerialFilter() == null) {
        ObjectInputFilter.Config.setSerialFilter(ObjectInputFilter.Config.createFilter("!*"));
      }
    } catch (IllegalStateException e) {
      log.debug("another filter for serialized objects was set meanwhile", e);
    }
  }

  /** One permanent task, so that nothing must be scheduled again, for which memory may be short. */
  private void begin() {
    Future<?> unused =
        worker.scheduleWithFixedDelay(
            this::turn, 0, settings.timings().look().toMillis(), TimeUnit.MILLISECONDS);
  }

  private void turn() {
    try {
      if (manager == null && !closed.get() && System.nanoTime() - nextStartNanos >= 0) {
        start();
      }
      look();
    } catch (RuntimeException | Error e) {
      logQuietly(e);
    }
  }

  private void logQuietly(Throwable why) {
    try {
      log.error("cluster {}", settings.name(), why);
    } catch (RuntimeException | Error e) {
      // A task that throws is not repeated, and there may be no memory for a log line.
    }
  }

  private void start() {
    DefaultCacheManager starting = null;
    try {
      starting = startManager();
      AdvancedCache<String, String> cache = startCache(starting);
      announcements =
          new Announcements(
              cache, starting.getAddress(), self, settings.timings().look(), this::soon);
      ChangeListener events = new ChangeListener(this::lookSoon, this::merged);
      starting.addListener(events);
      cache.addListener(events);
      if (closed.get()) {
        stop(starting);
        return;
      }
      manager = starting;
    } catch (Exception | Error e) {
      nextStartNanos = System.nanoTime() + retryDelay.toNanos();
      log.warn(
          "cluster {}: cannot join, trying again in {} s: {}",
          settings.name(),
          retryDelay.toSeconds(),
          rootCause(e).toString());
      log.debug("cluster {}", settings.name(), e);
      stop(starting);
      Duration doubled = retryDelay.multipliedBy(2);
      retryDelay = doubled.compareTo(MAX_RETRY_DELAY) < 0 ? doubled : MAX_RETRY_DELAY;
    }
  }

  private DefaultCacheManager startManager() throws Exception {
    JChannel unconnected = GroupChannel.create(settings);
    channel = unconnected;
    try {
      unconnected.setName(self.name());
      GlobalConfigurationBuilder global = new GlobalConfigurationBuilder();
      global
          .transport()
          .defaultTransport()
          .addProperty(JGroupsTransport.CHANNEL_CONFIGURATOR, new OneChannel(unconnected))
          .clusterName(GroupChannel.groupName(settings.name()))
          .distributedSyncTimeout(TOPOLOGY_TIMEOUT.toMillis());
      global.jmx().disable();
      global.metrics().gauges(false).histograms(false);
      global.globalState().disable();
      global.shutdown().hookBehavior(ShutdownHookBehavior.DONT_REGISTER);
      return new DefaultCacheManager(global.build(), true);
    } catch (Exception | Error e) {
      GroupChannel.expectClosing(unconnected);
      unconnected.close();
      throw e;
    }
  }

  private static AdvancedCache<String, String> startCache(DefaultCacheManager manager) {
    ConfigurationBuilder replicated = new ConfigurationBuilder();
    replicated
        .clustering()
        .cacheMode(CacheMode.REPL_SYNC)
        .remoteTimeout(CACHE_TIMEOUT.toMillis())
        .partitionHandling()
        .whenSplit(PartitionHandling.ALLOW_READ_WRITES);
    // Members repeat their announcements, so no node needs to wait for the state of the others.
    replicated
        .clustering()
        .stateTransfer()
        .awaitInitialTransfer(false)
        .timeout(CACHE_TIMEOUT.toMillis());
    replicated.statistics().disable();
    manager.defineConfiguration(CACHE, replicated.build());
    return manager.<String, String>getCache(CACHE).getAdvancedCache();
  }

  private static Throwable rootCause(Throwable e) {
    Throwable cause = e;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    return cause;
  }

  private void merged(List<List<Address>> parts) {
    soon(
        () -> {
          Announcements said = announcements;
          if (said != null) {
            said.merged(parts);
          }
        });
  }

  /** Coalesces changes that come together into one update. */
  private void lookSoon() {
    if (!isLookDue.getAndSet(true)) {
      soon(
          () -> {
            isLookDue.set(false);
            look();
          });
    }
  }

  private void soon(Runnable task) {
    try {
      Future<?> unused = worker.submit(task);
    } catch (RejectedExecutionException e) {
      log.trace("closed", e);
    }
  }

  /** Updates the view from the group and the announcements. */
  private void look() {
    DefaultCacheManager group = manager;
    Announcements said = announcements;
    if (group == null || said == null) {
      return;
    }
    try {
      List<Address> present = group.getMembers();
      if (present == null) {
        return;
      }
      Transport transport = GlobalComponentRegistry.componentOf(group, Transport.class);
      said.say(transport.getViewId(), present.size());
      said.forget(present, group.isCoordinator());
      farewells = said.farewells();
      View seen = view(said.of(present));
      deliver(seen);
      if (seen.members().size() >= present.size()) {
        joined.countDown();
      } else {
        awaited = "word from " + said.silent(present);
      }
    } catch (RuntimeException | Error e) {
      log.warn(
          "cluster {}: cannot determine the members: {}", settings.name(), rootCause(e).toString());
      log.debug("cluster {}", settings.name(), e);
    }
  }

  private View view(List<Member> present) {
    Map<UUID, Member> members = new LinkedHashMap<>();
    // Present members are ordered by age: of two with the same id, the younger one counts.
    present.forEach(member -> members.put(member.id(), member));
    members.put(self.id(), self);
    return new View(List.copyOf(members.values()));
  }

  private void deliver(View now) {
    if (!now.equals(view)) {
      view = now;
      isDelivered = false;
      log.info("cluster {}: {} members: {}", settings.name(), now.members().size(), now.members());
    }
    if (!isDelivered) {
      for (Consumer<View> listener : listeners) {
        listener.accept(now);
      }
      isDelivered = true;
    }
  }

  @Override
  public View view() {
    return view;
  }

  @Override
  public void onChange(Consumer<View> listener) {
    listeners.add(listener);
  }

  @Override
  public List<Member> farewells() {
    return farewells;
  }

  @Override
  public void sayGoodbye() {
    try {
      CompletableFuture.supplyAsync(() -> announcements, worker)
          .thenCompose(
              said -> said == null ? CompletableFuture.completedFuture(null) : said.sayGoodbye())
          .get(GOODBYE_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException | TimeoutException | RejectedExecutionException e) {
      log.info(
          "cluster {}: not all others heard this node's goodbye: {}",
          settings.name(),
          e.toString());
    }
  }

  @Override
  public void close() {
    if (closed.getAndSet(true)) {
      return;
    }
    Future<?> left = worker.submit(() -> stop(manager));
    try {
      left.get(LEAVE_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException | TimeoutException e) {
      log.warn("cluster {}: leaving takes too long; not waiting for it", settings.name());
    } finally {
      worker.shutdownNow();
    }
  }

  private void stop(@Nullable DefaultCacheManager stopping) {
    manager = null;
    announcements = null;
    if (channel != null) {
      GroupChannel.expectClosing(channel);
    }
    if (stopping != null) {
      try {
        stopping.close();
      } catch (Exception e) {
        log.debug("cluster {}: cannot leave cleanly", settings.name(), e);
      }
    }
  }
}
