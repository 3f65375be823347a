package io.pmfs.cluster.members;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.BiConsumer;
import org.infinispan.AdvancedCache;
import org.infinispan.remoting.transport.Address;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** With a cache whose removals end when the test wants it. */
final class AnnouncementsTest {
  private static final Duration PAUSE = Duration.ofMillis(20);

  private final Address here = Address.random("here");
  private final Address gone = Address.random("gone");
  private final Map<String, String> announced = new ConcurrentHashMap<>();
  private final LinkedBlockingQueue<CompletableFuture<@Nullable String>> removals =
      new LinkedBlockingQueue<>();
  private final Announcements announcements =
      new Announcements(
          cache(),
          here,
          new Member(new UUID(1, 2), 3, "here", "127.0.0.1", 1),
          PAUSE,
          Runnable::run);

  @SuppressWarnings("unchecked") // the proxy is a cache of anything
  private AdvancedCache<String, String> cache() {
    return (AdvancedCache<String, String>)
        Proxy.newProxyInstance(
            AdvancedCache.class.getClassLoader(),
            new Class<?>[] {AdvancedCache.class},
            (proxy, method, arguments) -> {
              switch (method.getName()) {
                case "withFlags" -> {
                  return proxy;
                }
                case "forEach" -> {
                  announced.forEach((BiConsumer<String, String>) arguments[0]);
                  return null;
                }
                case "removeAsync" -> {
                  CompletableFuture<@Nullable String> removal = new CompletableFuture<>();
                  removals.add(removal);
                  return removal;
                }
                default -> throw new UnsupportedOperationException(method.toString());
              }
            });
  }

  private void forget() {
    announcements.forget(List.of(here), true);
  }

  /** Each removal is a change, and each change has this called again. */
  @Test
  void announcement_ofANodeThatIsGone_isRemovedOnceAtATime() throws Exception {
    announced.put(here.getNodeUUID().toString(), "here");
    announced.put(gone.getNodeUUID().toString(), "gone");
    Await.until(
        "the removal",
        () -> {
          forget();
          return !removals.isEmpty();
        });
    for (int i = 0; i < 100; i++) {
      forget();
    }
    assertThat(removals).hasSize(1);
    removals.remove().completeExceptionally(new IllegalStateException("no answer"));
    forget();
    assertThat(removals).as("it is tried again").hasSize(1);
  }

  /** It has announced itself, and is about to be seen in the group. */
  @Test
  void announcement_thatHasJustCome_isKept() {
    announced.put(gone.getNodeUUID().toString(), "about to come");
    long until = System.nanoTime() + PAUSE.toNanos();
    while (System.nanoTime() < until) {
      forget();
    }
    assertThat(removals).isEmpty();
    announcements.forget(List.of(here, gone), true);
    forget();
    assertThat(removals).isEmpty();
  }
}
