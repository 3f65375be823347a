package io.pmfs.cluster.members;

import com.google.common.util.concurrent.ThreadFactoryBuilder;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.jgroups.Address;
import org.jgroups.Message;
import org.jgroups.conf.ClassConfigurator;
import org.jgroups.protocols.TCPPING;
import org.jgroups.stack.IpAddress;
import org.jgroups.util.Responses;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks for members on all hosts of a list at the same time. JGroups would connect to one port
 * after another on its timer thread: with 64 hosts that do not answer, a search would take minutes
 * and block everything else.
 *
 * <p>A host that does not answer at the first port is not tried at its others.
 */
final class NodeSearch extends TCPPING {
  private static final Logger log = LoggerFactory.getLogger(NodeSearch.class);

  /** Simultaneous searches: another starts while one waits for hosts that do not answer. */
  private static final int MOST_SEARCHES = 4;

  /**
   * Simultaneous connections to hosts that answer. A frozen process holds one until its handshake
   * times out.
   */
  private static final int MOST_SENDERS = 64;

  private static final int MOST_WAITING = 8192;
  private static final Duration IDLE = Duration.ofSeconds(5);

  /** Longer than TCP takes to repeat its first packet, which is one second. */
  private static final Duration PATIENCE = Duration.ofSeconds(2);

  /**
   * How long a new node waits for the first answer while hosts are still being tried, or while it
   * is connected to a member, which may run on a busy machine.
   */
  private static final Duration ANSWER = Duration.ofSeconds(10);

  private static final long LOOK_MILLIS = 100;

  private final InetAddress from;
  private final Duration first;
  private final Predicate<Address> isConnected;
  private final Object resolving = new Object();
  private volatile boolean isClosed;

  private volatile boolean hasMet;

  private final Set<Address> asked = ConcurrentHashMap.newKeySet();
  private final ThreadPoolExecutor searches;
  private final ThreadPoolExecutor senders;

  private static final ThreadLocal<@Nullable List<Message>> REQUESTS = new ThreadLocal<>();

  /**
   * @param from this node's address
   * @param first how long a new node waits for others before it is the first
   * @param isConnected whether there is a connection to an address already
   */
  NodeSearch(InetAddress from, Duration first, Predicate<Address> isConnected) {
    this.from = from;
    this.first = first;
    this.isConnected = isConnected;
    setId(ClassConfigurator.getProtocolId(TCPPING.class));
    searches =
        new ThreadPoolExecutor(
            0,
            MOST_SEARCHES,
            IDLE.toMillis(),
            TimeUnit.MILLISECONDS,
            new SynchronousQueue<>(),
            daemons("pmfs-group-search-%d"));
    senders =
        new ThreadPoolExecutor(
            MOST_SENDERS,
            MOST_SENDERS,
            IDLE.toMillis(),
            TimeUnit.MILLISECONDS,
            new LinkedBlockingQueue<>(MOST_WAITING),
            daemons("pmfs-group-send-%d"));
    senders.allowCoreThreadTimeOut(true);
  }

  private static ThreadFactory daemons(String name) {
    return new ThreadFactoryBuilder().setNameFormat(name).setDaemon(true).build();
  }

  /** Looks for the group to join; returns once a leading member has answered, or at the timeout. */
  @Override
  public Responses findMembers(
      @Nullable List<Address> members, boolean isInitial, boolean isAsynchronous, long timeout) {
    if (!isInitial) {
      return super.findMembers(members, false, isAsynchronous, timeout);
    }
    long begin = System.nanoTime();
    Responses found = super.findMembers(members, true, isAsynchronous, first.toMillis());
    boolean isOver = found.waitFor(first.toMillis());
    while (!isOver && !isClosed && found.isEmpty() && (isBusy() || hasMet)) {
      isOver = found.waitFor(LOOK_MILLIS) || System.nanoTime() - begin > ANSWER.toNanos();
    }
    return found.done();
  }

  /** Whether hosts may still answer, or a member is being connected to. */
  private boolean isBusy() {
    return searches.getActiveCount() > 0 || !asked.isEmpty();
  }

  /** Starts a search; answers arrive asynchronously. */
  @Override
  public void findMembers(@Nullable List<Address> members, boolean isInitial, Responses responses) {
    try {
      searches.execute(() -> search(members, isInitial, responses));
    } catch (RejectedExecutionException e) {
      log.trace("enough searches, or closed", e);
    } catch (OutOfMemoryError e) {
      log.warn("cannot start a thread that looks for members: {}", e.toString());
    }
  }

  private void search(@Nullable List<Address> members, boolean isInitial, Responses responses) {
    List<Message> all = new ArrayList<>();
    try {
      collect(members, isInitial, responses, all);
      ask(all);
    } catch (IOException | RuntimeException | Error e) {
      log.warn("cannot look for members: {}", e.toString());
      log.debug("looking for members", e);
    }
  }

  /** Also resolves the names of hosts that had no address so far. */
  private void collect(
      @Nullable List<Address> members, boolean isInitial, Responses responses, List<Message> all) {
    REQUESTS.set(all);
    try {
      synchronized (resolving) {
        super.findMembers(members, isInitial, responses);
      }
    } finally {
      REQUESTS.remove();
    }
  }

  @Override
  protected void sendDiscoveryRequest(Message request) {
    List<Message> all = REQUESTS.get();
    if (all == null) {
      super.sendDiscoveryRequest(request);
    } else {
      all.add(request);
    }
  }

  private void ask(List<Message> all) throws IOException {
    Map<InetSocketAddress, Message> wanted = new HashMap<>();
    Map<InetAddress, List<InetSocketAddress>> hosts = new LinkedHashMap<>();
    all.stream()
        .filter(request -> !askIfConnected(request))
        .sorted(Comparator.comparing(request -> ((IpAddress) request.getDest()).getPort()))
        .forEach(
            request -> {
              IpAddress to = (IpAddress) request.getDest();
              InetSocketAddress address = new InetSocketAddress(to.getIpAddress(), to.getPort());
              wanted.put(address, request);
              hosts.computeIfAbsent(to.getIpAddress(), host -> new ArrayList<>()).add(address);
            });
    List<InetSocketAddress> first = hosts.values().stream().map(ports -> ports.remove(0)).toList();
    new ConnectionProbes(from, PATIENCE, (address, answer) -> next(address, answer, wanted, hosts))
        .run(first);
  }

  private Collection<InetSocketAddress> next(
      InetSocketAddress address,
      ConnectionProbes.Answer answer,
      Map<InetSocketAddress, Message> wanted,
      Map<InetAddress, List<InetSocketAddress>> hosts) {
    Message request = wanted.get(address);
    if (answer == ConnectionProbes.Answer.ACCEPTED && request != null) {
      send(request);
    }
    List<InetSocketAddress> others =
        answer == ConnectionProbes.Answer.NONE ? null : hosts.remove(address.getAddress());
    return others == null ? List.of() : others;
  }

  private boolean askIfConnected(Message request) {
    boolean asks = isConnected.test(request.getDest());
    if (asks) {
      send(request);
    }
    return asks;
  }

  /** Sends on a thread of its own, because a handshake may be slow. */
  private void send(Message request) {
    Address to = request.getDest();
    if (!asked.add(to)) {
      return;
    }
    try {
      senders.execute(
          () -> {
            try {
              super.sendDiscoveryRequest(request);
              hasMet |= isConnected.test(to);
            } finally {
              asked.remove(to);
            }
          });
    } catch (RejectedExecutionException | OutOfMemoryError e) {
      log.debug("{} is not asked now", to, e);
      asked.remove(to);
    }
  }

  @Override
  public void destroy() {
    isClosed = true;
    searches.shutdownNow();
    senders.shutdownNow();
    super.destroy();
  }
}
