package io.pmfs.cluster.members;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.infinispan.AdvancedCache;
import org.infinispan.context.Flag;
import org.infinispan.distribution.DistributionManager;
import org.infinispan.remoting.transport.Address;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The announcements of a group's members, in a cache that every member holds completely. For one
 * thread.
 *
 * <p>Others may lack this node's announcement without its knowing: when parts of a group merge, all
 * but one part lose their announcements. A frozen node is such a part, although it sees the same
 * members before and after. So a node repeats its announcement several times in each view of the
 * group, since each merge makes a new view, and occasionally without a cause.
 */
final class Announcements {
  private static final Logger log = LoggerFactory.getLogger(Announcements.class);

  /** How often a node announces itself in each view of the group. */
  private static final int TIMES = 3;

  /** Limits what a node receives to 50 announcements a second, however many members there are. */
  private static final Duration PAUSE_PER_MEMBER = Duration.ofMillis(20);

  /** How many times rarer announcements without a cause are: a node receives at most 5 a second. */
  private static final int SELDOM = 10;

  /** Prefix of the keys of farewells; the id of the leaving node and a number follow. */
  private static final String FAREWELL = "left ";

  /**
   * Enough numbers to find a key in each of the cache's 256 segments. In a larger group, a node may
   * be the first owner of no segment.
   */
  private static final int MOST_NUMBERS = 2_000;

  /** An absent node's announcement is kept for this many times the shortest pause. */
  private static final int PAUSES_TO_FORGET = 3;

  /** Limit of farewells of all time; nodes that leave later are reported as missing. */
  private static final int MOST_FAREWELLS = 8_192;

  /** Puts are complete when every member has answered. */
  private final AdvancedCache<String, String> answered;

  /**
   * Puts do not wait for the other members. If they did, they would hold the locks of their keys
   * while the cache is rebalanced: when 16 nodes joined at once, lock timeouts and repeated puts
   * kept them all busy for minutes in every second attempt.
   */
  private final AdvancedCache<String, String> all;

  private final AdvancedCache<String, String> here;
  private final String key;
  private final String own;
  private final String ownFarewell;
  private final Duration pause;
  private final Executor worker;

  /** All farewells seen so far: a merge of two parts of a group may lose some. */
  private final Map<String, String> farewells = new HashMap<>();

  /** The announcements of absent nodes, with the time since which they are absent. */
  private Map<String, Long> strangers = Map.of();

  private final Set<String> removing = new HashSet<>();

  private int view = -1;
  private int left;

  /** How often to repeat farewells. */
  private int repeats;

  private boolean saying;
  private long next = System.nanoTime();

  /**
   * @param address this node's address in the group
   * @param pause the least time between two announcements
   * @param worker runs later tasks on the thread that uses this object
   */
  Announcements(
      AdvancedCache<String, String> cache,
      Address address,
      Member self,
      Duration pause,
      Executor worker) {
    answered = cache;
    all = cache.withFlags(Flag.FORCE_ASYNCHRONOUS, Flag.IGNORE_RETURN_VALUES);
    here = cache.withFlags(Flag.CACHE_MODE_LOCAL, Flag.SKIP_CACHE_LOAD);
    key = key(address);
    own = Announcement.of(self);
    ownFarewell = FAREWELL + self.id();
    this.pause = pause;
    this.worker = worker;
  }

  /** A member's key: new at each start, unlike its id. */
  private static String key(Address address) {
    return address.getNodeUUID().toString();
  }

  /**
   * Announces this node if that is due.
   *
   * @param groupView the number of the group's view
   * @param members how many members that view has
   */
  void say(int groupView, int members) {
    long now = System.nanoTime();
    if (groupView != view) {
      view = groupView;
      left = TIMES;
    }
    Duration least = PAUSE_PER_MEMBER.multipliedBy(members);
    long wait = (least.compareTo(pause) > 0 ? least : pause).toNanos();
    long extra = left > 0 ? 0 : (SELDOM - 1) * wait;
    if (saying || now - next < extra) {
      return;
    }
    next = now + wait;
    saying = true;
    left = Math.max(0, left - 1);
    if (repeats > 0) {
      repeats--;
      farewells.forEach((gone, text) -> afterwards(all.putAsync(gone, text), failure -> {}));
    }
    afterwards(
        all.putAsync(key, own),
        failure -> {
          saying = false;
          if (failure != null) {
            left = TIMES;
          }
        });
  }

  /** Announces that this node leaves on purpose; the result completes when all have received it. */
  CompletableFuture<?> sayGoodbye() {
    return farewells.size() < MOST_FAREWELLS
        ? answered.putAsync(keptHere(ownFarewell), own)
        : CompletableFuture.completedFuture(null);
  }

  /**
   * A key whose first copy is on this node, which then sends it to all others itself. Another first
   * owner may have died, and would send it to nobody.
   */
  private String keptHere(String farewell) {
    DistributionManager places = all.getDistributionManager();
    if (places != null) {
      for (int number = 0; number < MOST_NUMBERS; number++) {
        String key = farewell + " " + number;
        if (places.getCacheTopology().getDistribution(key).isPrimary()) {
          return key;
        }
      }
    }
    return farewell;
  }

  /** A farewell's key without its number, because a node may leave several times. */
  private static String withoutNumber(String key) {
    int end = key.indexOf(' ', FAREWELL.length());
    return end < 0 ? key : key.substring(0, end);
  }

  /**
   * Called after parts of the group have merged, when all but one part lose their entries: the
   * first member of each part repeats the farewells of its part.
   */
  void merged(List<List<Address>> parts) {
    if (parts.stream().anyMatch(part -> !part.isEmpty() && key(part.get(0)).equals(key))) {
      repeats = TIMES;
      left = TIMES;
    }
  }

  /** The farewell of a node's latest instance: a merge may bring an older one back. */
  private static String later(String one, String other) {
    return instance(one) > instance(other) ? one : other;
  }

  private static long instance(String text) {
    return Announcement.parse(text).map(Member::instance).orElse(Long.MIN_VALUE);
  }

  /** The nodes that have said goodbye, as they were then. */
  List<Member> farewells() {
    here.forEach(
        (gone, text) -> {
          String who = withoutNumber(gone);
          boolean isOne = gone.startsWith(FAREWELL);
          if (isOne && (farewells.size() < MOST_FAREWELLS || farewells.containsKey(who))) {
            farewells.merge(who, text, Announcements::later);
          }
        });
    return farewells.values().stream().flatMap(text -> Announcement.parse(text).stream()).toList();
  }

  /**
   * On the oldest member, removes announcements of nodes that have been absent for a while. Not at
   * once, because the announcement of a joining node may arrive before the node is seen in the
   * group.
   */
  void forget(List<Address> present, boolean oldest) {
    long now = System.nanoTime();
    Set<String> keys = present.stream().map(Announcements::key).collect(Collectors.toSet());
    Map<String, Long> gone = new HashMap<>();
    here.forEach(
        (each, text) -> {
          if (!keys.contains(each) && !each.startsWith(FAREWELL)) {
            gone.put(each, strangers.getOrDefault(each, now));
          }
        });
    strangers = gone;
    if (oldest) {
      gone.forEach(
          (each, since) -> {
            boolean isDue = now - since >= PAUSES_TO_FORGET * pause.toNanos();
            // Removal is slow if others do not answer, and this is called at each change.
            if (isDue && removing.add(each)) {
              afterwards(all.removeAsync(each), failure -> removing.remove(each));
            }
          });
    }
  }

  private void afterwards(CompletableFuture<?> work, Consumer<@Nullable Throwable> then) {
    CompletionStage<?> unused =
        work.handle(
            (result, failure) -> {
              if (failure != null) {
                log.debug("cannot send or remove an announcement; will try again", failure);
              }
              worker.execute(() -> then.accept(failure));
              return null;
            });
  }

  /** The group names of present members that have not announced themselves. */
  String silent(List<Address> present) {
    return present.stream()
        .filter(address -> !here.containsKey(key(address)))
        .map(Address::toString)
        .sorted()
        .collect(Collectors.joining(", "));
  }

  /** The present members that have announced themselves, in the given order. */
  List<Member> of(List<Address> present) {
    List<Member> members = new ArrayList<>();
    for (Address address : present) {
      String text = here.get(key(address));
      if (text != null) {
        Announcement.parse(text).ifPresent(members::add);
      }
    }
    return members;
  }
}
