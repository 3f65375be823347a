package io.pmfs.cluster.members;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.temporal.ChronoUnit;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checks once a second which expected nodes are present, and records that in a file for the next
 * daemon of the same mount. Thread-safe.
 */
public final class Attendance implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Attendance.class);

  static final String FILE = "cluster-nodes";
  public static final Duration LOOK = Duration.ofSeconds(1);

  /** How many checks lie between attempts to resolve the hosts without a member. */
  private static final int LOOKS_TO_RESOLVE = 10;

  private final Path file;
  private final InstantSource clock;
  private final Duration look;
  private final RollCall call; // GUARDED_BY(this)
  private @Nullable Membership membership; // GUARDED_BY(this)
  private boolean isChanged = true; // GUARDED_BY(this)

  /** Whether an answer was given that the file does not have yet. */
  private boolean isUrgent; // GUARDED_BY(this)

  private boolean closed; // GUARDED_BY(this)
  private boolean isTroubled;

  /**
   * Starts a mount's attendance, or continues that of an earlier daemon.
   *
   * @param state the directory that keeps the file
   * @param hosts the hosts on which nodes are expected; empty if that is not known
   * @param name this node's name
   * @param address this node's address
   * @param isResumed whether an earlier daemon served the same mount
   * @param look how often to look for missing nodes
   */
  public Attendance(
      Path state,
      List<String> hosts,
      String name,
      InetAddress address,
      boolean isResumed,
      InstantSource clock,
      Duration look) {
    this.file = state.resolve(FILE);
    this.clock = clock;
    this.look = look;
    RollCall kept = isResumed ? kept(hosts) : null;
    this.call = kept == null ? new RollCall(hosts, now()) : kept;
    call.isHere(name, address.getHostAddress());
  }

  private @Nullable RollCall kept(List<String> hosts) {
    try {
      RollCall kept = RollCall.of(hosts, Files.readString(file, UTF_8));
      if (kept == null) {
        log.warn("{}: is malformed; nodes that are absent now are not reported as missing", file);
      }
      return kept;
    } catch (NoSuchFileException e) {
      return null;
    } catch (IOException e) {
      log.warn("{}: {}; nodes that are absent now are not reported as missing", file, e.toString());
      return null;
    }
  }

  /** Truncated to the file's precision, so that a time stays the same for the next daemon. */
  private Instant now() {
    return clock.instant().truncatedTo(ChronoUnit.MILLIS);
  }

  /** Starts the checks; they run until this is closed. */
  public synchronized void begin(Membership joined) {
    membership = joined;
    Thread thread = new Thread(this::run, "pmfs-attendance");
    thread.setDaemon(true);
    try {
      thread.start();
    } catch (OutOfMemoryError e) {
      log.warn("missing nodes are only determined on request: {}", e.toString());
    }
  }

  public synchronized Roll roll() {
    Membership joined = membership;
    if (joined != null && !closed) {
      // The view first, because a node says goodbye before it leaves.
      List<Member> present = joined.view().members();
      if (call.look(present, joined.farewells(), now())) {
        isChanged = true;
        isUrgent = true;
        notifyAll();
      }
    }
    return call.roll();
  }

  private void run() {
    int pause = 0;
    Set<String> resolved = new HashSet<>();
    try {
      while (!isOver()) {
        try {
          roll();
          pause--;
          if (pause < 0 && isUnclear()) {
            resolve(resolved);
            pause = LOOKS_TO_RESOLVE;
          }
          keep();
        } catch (RuntimeException | Error e) {
          log.warn("determining the missing nodes: {}", e.toString());
        }
        pause();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized void pause() throws InterruptedException {
    long end = System.nanoTime() + look.toNanos();
    long left = look.toNanos();
    while (left > 0 && !isUrgent && !closed) {
      wait(left / 1_000_000 + 1);
      left = end - System.nanoTime();
    }
    isUrgent = false;
  }

  private synchronized boolean isOver() {
    return closed;
  }

  private synchronized boolean isUnclear() {
    return call.isUnclear();
  }

  private synchronized List<String> neverSeen() {
    return call.neverSeen();
  }

  private synchronized void resolved(String host, String address) {
    call.resolved(host, address);
  }

  /** A list may name nodes differently than they name themselves. */
  private void resolve(Set<String> resolved) {
    for (String host : neverSeen()) {
      if (isOver()) {
        return;
      }
      if (resolved.contains(host)) {
        continue;
      }
      try {
        for (InetAddress address : InetAddress.getAllByName(host)) {
          resolved(host, address.getHostAddress());
        }
        resolved.add(host);
      } catch (UnknownHostException e) {
        log.debug("{}: {}", host, e.toString());
      }
    }
  }

  private synchronized @Nullable String changedText() {
    String text = isChanged ? call.text() : null;
    isChanged = false;
    return text;
  }

  private synchronized void keepLater() {
    isChanged = true;
  }

  private void keep() {
    String text = changedText();
    if (text == null) {
      return;
    }
    Path next = file.resolveSibling(FILE + ".new");
    try {
      Files.writeString(next, text, UTF_8);
      Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
      isTroubled = false;
    } catch (IOException e) {
      keepLater();
      if (!isTroubled) {
        log.warn(
            "{}: {}; the next daemon will not know which nodes are missing", file, e.toString());
      }
      isTroubled = true;
    }
  }

  /** Stops the checks. Idempotent. */
  @Override
  public synchronized void close() {
    closed = true;
    notifyAll();
  }
}
