package io.pmfs.cluster.members;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.infinispan.AdvancedCache;
import org.infinispan.context.Flag;
import org.infinispan.remoting.transport.Address;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The announcements of a group's members, in a cache that every member holds completely. For one
 * thread.
 *
 * <p>Others may lack this node's announcement, and it cannot see that: when parts of a group merge,
 * all but one part lose their announcements. A node that was frozen is such a part, although it has
 * seen the same members before and after. So a node repeats its announcement several times in each
 * view of the group, since each merge makes a new view, and occasionally without a cause.
 */
final class Announcements {
  private static final Logger log = LoggerFactory.getLogger(Announcements.class);

  /** Announcements of a node in each view of the group. */
  private static final int TIMES = 3;

  /** So that a node hears at most 50 announcements a second, however many members there are. */
  private static final Duration PAUSE_PER_MEMBER = Duration.ofMillis(20);

  /** Announcements without a cause are this many times rarer: a node hears at most 5 a second. */
  private static final int SELDOM = 10;

  private final AdvancedCache<String, String> all;
  private final AdvancedCache<String, String> here;
  private final String key;
  private final String own;
  private final Duration pause;
  private final Executor worker;

  private Set<String> strangers = Set.of();
  private int view = -1;
  private int left;
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
    all = cache;
    here = cache.withFlags(Flag.CACHE_MODE_LOCAL, Flag.SKIP_CACHE_LOAD);
    key = key(address);
    own = Announcement.of(self);
    this.pause = pause;
    this.worker = worker;
  }

  /** A member's key: new at each start, unlike its id. */
  private static String key(Address address) {
    return address.getNodeUUID().toString();
  }

  /**
   * Announces this node, if it is time to.
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
    afterwards(
        all.putAsync(key, own),
        failure -> {
          saying = false;
          if (failure != null) {
            left = TIMES;
          }
        });
  }

  /**
   * On the oldest member, removes the announcements of nodes that were absent at this and the
   * previous call.
   */
  void forget(List<Address> present, boolean oldest) {
    Set<String> keys = present.stream().map(Announcements::key).collect(Collectors.toSet());
    Set<String> gone =
        here.keySet().stream().filter(key -> !keys.contains(key)).collect(Collectors.toSet());
    if (oldest) {
      gone.stream()
          .filter(strangers::contains)
          .forEach(key -> afterwards(all.removeAsync(key), failure -> {}));
    }
    strangers = gone;
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
