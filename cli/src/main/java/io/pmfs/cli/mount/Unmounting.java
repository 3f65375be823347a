package io.pmfs.cli.mount;

import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.MountClient;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.process.ExternalUnmount;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.TimeSpan;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.mounts.MountViewers;
import io.pmfs.mounts.Registry;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Unmounts one mount point, and waits until its daemon has ended or serves only others.
 *
 * <p>If it is the daemon's only mount point, the daemon unmounts, because it must first stop
 * cleanly. Otherwise this process unmounts: the session ends with its last mount point.
 */
final class Unmounting {
  private static final long POLL_MS = 50;
  private static final int ATTEMPTS = 5;
  private static final int HTTP_OK = 200;
  private static final int HTTP_BAD_REQUEST = 400;
  private static final int HTTP_CONFLICT = 409;
  private static final int HTTP_GONE = 410;
  private static final int HTTP_NOT_IMPLEMENTED = 501;
  private static final Duration LAZY_PATIENCE = Duration.ofSeconds(2);

  /** If the daemon takes longer, looks for what keeps it. */
  private static final Duration USUAL_END = Duration.ofMillis(500);

  private final Path mountpoint;

  /** The mount to unmount, never a later one at the same mount point; null if there is none. */
  private final MountTable.@Nullable Mount target;

  private final WhenBusy busy;
  private final boolean purge;
  private final String timeoutText;
  private final Duration timeout;
  private final Invocation invocation;

  Unmounting(
      Path mountpoint,
      MountTable.@Nullable Mount target,
      WhenBusy busy,
      boolean purge,
      String timeoutText,
      Invocation invocation)
      throws MountFailure {
    this.mountpoint = mountpoint;
    this.target = target;
    this.busy = busy;
    this.purge = purge;
    this.timeoutText = timeoutText;
    this.timeout = MountFailure.parsing("--timeout", timeoutText, TimeSpan::parse);
    this.invocation = invocation;
  }

  /**
   * A daemon, and a handle of its process obtained before the first request, because pids are
   * reused.
   */
  private record Server(DaemonRecord entry, @Nullable ProcessHandle process) {
    static Server of(DaemonRecord entry) {
      return new Server(entry, ProcessHandle.of(entry.pid()).orElse(null));
    }

    boolean isAlive() {
      return process != null && process.isAlive();
    }
  }

  /**
   * Unmounts a mount with a daemon.
   *
   * @param abandons whether to tell the daemon not to wait for the source
   * @param isDrained whether it is writable and was drained
   * @return whether changes that were made after the drain may be left
   */
  boolean ofDaemon(DaemonRecord entry, boolean abandons, boolean isDrained) throws MountFailure {
    Server server = Server.of(entry);
    List<Path> others = others(entry);
    // A purge ends the daemon, including its hidden mount.
    if (others.isEmpty() || (purge && others.stream().allMatch(Registry::isKept))) {
      boolean isAsked = askDaemon(server, abandons);
      boolean isLeft = awaitEnd(server, isDrained);
      if (purge && !(isAsked && isSaved(entry))) {
        throw notPurged(server);
      }
      return isLeft;
    }
    if (purge) {
      throw MountFailure.usage(
          "%s: nothing was purged or unmounted: %s shares its copies; unmount without --purge, or unmount that one first"
              .formatted(mountpoint, others.get(0)));
    }
    unmountHere();
    List<Path> left = others(entry);
    if (left.isEmpty()) {
      return awaitEnd(server, isDrained);
    }
    if (left.stream().allMatch(Registry::isKept)) {
      invocation.say(
          "%s unmounted; pid %d stays for the next mount of %s (--linger); pmfs umount %s ends it"
              .formatted(mountpoint, entry.pid(), entry.source(), left.get(0)));
    }
    return false;
  }

  /** The other mount points of the target's daemon. */
  private List<Path> others(DaemonRecord entry) throws MountFailure {
    if (target == null) {
      return List.of();
    }
    MountTable mounts = invocation.surroundings().mounts();
    List<Path> places = entry.isOf(target) ? mounts.places(entry::shows) : mounts.placesOf(target);
    return places.stream()
        .filter(place -> !place.equals(mountpoint))
        .sorted(Comparator.comparing(Registry::isKept))
        .toList();
  }

  /** Unmounts the source itself, which is mounted there after a crash loop. */
  void ofStandIn() throws MountFailure {
    unmountHere();
    if (purge) {
      throw notPurged("but nothing was purged: only the source was mounted there");
    }
  }

  /** Unmounts a mount whose daemon has died. */
  void withoutDaemon(boolean isStale) throws MountFailure {
    unmountHere(isStale);
    if (!await(() -> !isMounted(), timeout)) {
      throw new MountFailure(
          ExitStatus.FAILED, mountpoint + ": still mounted; there may be another mount below it");
    }
    if (isStale) {
      invocation.say(mountpoint + ": removed a stale mount whose daemon had died");
    }
    if (purge) {
      throw notPurged("but without its daemon nothing was purged");
    }
  }

  private MountFailure notPurged(Server server) throws MountFailure {
    DaemonRecord entry = server.entry();
    return end(server) == End.RUNNING
        ? new MountFailure(
            ExitStatus.PARTLY,
            "%s: unmounted, but its copies stay until pid %d has ended"
                .formatted(mountpoint, entry.pid()))
        : notPurged("but not everything was purged: see " + entry.logFile());
  }

  private MountFailure notPurged(String why) {
    return new MountFailure(
        ExitStatus.PARTLY,
        "%s: unmounted, %s; mount it again and umount --purge".formatted(mountpoint, why));
  }

  /** Whether the target is still what is mounted there. */
  boolean isMounted() throws MountFailure {
    return target != null && target.isSameAs(invocation.surroundings().mounts().at(mountpoint));
  }

  /** A daemon's answer to a request to unmount. */
  private enum Reply {
    UNMOUNTED,
    BUSY,
    /** The supervisor, which would unmount for the daemon, is gone. */
    CANNOT,
    FAILED;

    static Reply of(ControlClient.Answer answer) {
      return switch (answer.status()) {
        case HTTP_OK -> UNMOUNTED;
        case HTTP_CONFLICT -> BUSY;
        case HTTP_NOT_IMPLEMENTED -> CANNOT;
        default -> FAILED;
      };
    }
  }

  /** Returns whether the daemon unmounts as requested. */
  private boolean askDaemon(Server server, boolean abandons) throws MountFailure {
    DaemonRecord entry = server.entry();
    try {
      ControlClient.Answer answer = ask(entry, abandons);
      while (Reply.of(answer) == Reply.BUSY) {
        busy.await(mountpoint, target);
        answer = ask(entry, abandons);
      }
      switch (Reply.of(answer)) {
        case UNMOUNTED -> {
          if (!isOwn(entry) || entry.detached()) {
            unmountHere(); // the daemon unmounts only where it mounted
          }
          return true;
        }
        case CANNOT -> {
          if (purge) {
            invocation.warn(mountpoint + ": nothing is purged: the daemon's supervisor is gone");
          }
          unmountHere();
        }
        default -> {
          if (answer.status() != HTTP_GONE || isMounted()) {
            throw new MountFailure(
                ExitStatus.FAILED, MountFailure.naming(mountpoint, answer.error()));
          }
        }
      }
    } catch (IOException e) {
      detachFrom(server, e);
    }
    return false;
  }

  private boolean isOwn(DaemonRecord entry) {
    return mountpoint.toString().equals(entry.mountpoint());
  }

  /**
   * Requests the unmount. The daemon must confirm the device number, because its record may be
   * outdated; a daemon of an older pmfs rejects that parameter and is asked again without.
   */
  private ControlClient.Answer ask(DaemonRecord entry, boolean abandons)
      throws IOException, MountFailure {
    String request =
        "/umount?lazy=%s&purge=%s".formatted(busy.detaches(), purge)
            + (abandons ? "&abandon=true" : "");
    MountClient daemon = new MountClient(entry, invocation.surroundings());
    if (target != null) {
      ControlClient.Answer answer =
          daemon.askOnlyThisOne(HttpMethod.POST, request + "&device=" + target.device(), timeout);
      if (answer.status() != HTTP_BAD_REQUEST) {
        return answer;
      }
    }
    return daemon.askOnlyThisOne(HttpMethod.POST, request, timeout);
  }

  private void unmountHere() throws MountFailure {
    unmountHere(false);
  }

  private void unmountHere(boolean isStale) throws MountFailure {
    // Retries, because the daemon's heartbeat may be using the mount.
    for (int attempt = 0; target != null; attempt++) {
      try {
        ExternalUnmount.run(target, busy.detaches() || isStale, invocation.surroundings());
        return;
      } catch (MountFailure e) {
        if (!e.isBusy()) {
          throw e;
        }
        if (attempt < ATTEMPTS) {
          pause(POLL_MS);
        } else {
          busy.await(mountpoint, target);
        }
      }
    }
  }

  /**
   * Does nothing if the daemon has just unmounted. While the daemon runs, requires --lazy or
   * --grace.
   */
  private void detachFrom(Server silent, IOException why) throws MountFailure {
    if (target == null || !isMounted()) {
      return;
    }
    long pid = silent.entry().pid();
    if (silent.isAlive() && busy.fails()) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: pid %d does not answer (%s); try --lazy, or kill %d"
              .formatted(mountpoint, pid, why.getMessage(), pid),
          why);
    }
    ExternalUnmount.run(target, true, invocation.surroundings());
    invocation.say(
        "%s: detached without its daemon (pid %d), which did not answer"
            .formatted(mountpoint, pid));
  }

  /** What a daemon does after the unmount. */
  private enum End {
    ENDED,
    /** Still serves open files of another mount point. */
    SERVES_OTHERS,
    RUNNING
  }

  private End end(Server server) throws MountFailure {
    boolean isThisProcess = server.entry().pid() == ProcessHandle.current().pid();
    return isThisProcess || !server.isAlive()
        ? End.ENDED
        : servesOthers(server.entry()) ? End.SERVES_OTHERS : End.RUNNING;
  }

  /** Whether the daemon serves files that are still open, and is not about to end. */
  private boolean isServing(DaemonRecord entry) throws MountFailure {
    try {
      ControlClient.ask(Path.of(entry.socket()), HttpMethod.GET, "/version", LAZY_PATIENCE);
      return true;
    } catch (IOException e) {
      return KnownMounts.open(invocation.surroundings()).detached().stream()
          .anyMatch(moved -> moved.pid() == entry.pid());
    }
  }

  private boolean awaitEnd(Server server, boolean isDrained) throws MountFailure {
    if (!await(() -> !isMounted(), timeout)) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: still mounted after %s; see the log".formatted(mountpoint, timeoutText));
    }
    DaemonRecord entry = server.entry();
    if (!await(() -> end(server) != End.RUNNING, USUAL_END)) {
      List<String> viewers = viewers(entry);
      if (!viewers.isEmpty()) {
        invocation.say(
            "%s unmounted here, but not in other mount namespaces: %s; pid %d ends with the last of them"
                .formatted(mountpoint, String.join(", ", viewers), entry.pid()));
        return false; // The session goes on, and copies what is written there.
      }
      await(() -> end(server) != End.RUNNING, busy.detaches() ? LAZY_PATIENCE : timeout);
      if (isDrained && busy.detaches() && end(server) == End.RUNNING && !isServing(entry)) {
        // It copies the last changes.
        await(() -> end(server) != End.RUNNING, timeout);
      }
    }
    switch (end(server)) {
      case ENDED -> {}
      case SERVES_OTHERS -> {
        invocation.say(
            "%s unmounted; pid %d still serves open files of another mount point; see pmfs status"
                .formatted(mountpoint, entry.pid()));
        return false;
      }
      case RUNNING -> {
        if (!busy.detaches()) {
          throw new MountFailure(
              ExitStatus.FAILED,
              "%s: unmounted, but pid %d has not ended after %s; see %s, or kill %d"
                  .formatted(mountpoint, entry.pid(), timeoutText, entry.logFile(), entry.pid()));
        }
        invocation.say(
            "%s detached; pid %d ends when the last open file is closed; see pmfs status"
                .formatted(mountpoint, entry.pid()));
      }
    }
    return isDrained && !isSaved(entry);
  }

  private boolean isSaved(DaemonRecord entry) throws MountFailure {
    return KnownMounts.open(invocation.surroundings()).isSaved(entry);
  }

  /** The processes that keep the session in other mount namespaces. */
  private List<String> viewers(DaemonRecord entry) {
    String device = target != null ? target.device() : entry.device();
    return device == null
        ? List.of()
        : new MountViewers(invocation.surroundings()).elsewhere(device, entry.source());
  }

  /** Whether the daemon has ended the target's session and serves others. */
  private boolean servesOthers(DaemonRecord entry) throws MountFailure {
    MountTable.Mount ended = target;
    return ended != null
        && entry.isOf(ended)
        && KnownMounts.open(invocation.surroundings()).known().stream()
            .anyMatch(
                known ->
                    known.running()
                        && known.daemon().pid() == entry.pid()
                        && !known.daemon().isOf(ended));
  }

  private interface Condition {
    boolean holds() throws MountFailure;
  }

  private static boolean await(Condition condition, Duration limit) throws MountFailure {
    long deadline = System.nanoTime() + limit.toNanos();
    while (!condition.holds()) {
      if (System.nanoTime() - deadline > 0 || !pause(POLL_MS)) {
        return false;
      }
    }
    return true;
  }

  /** Sleeps; returns false if interrupted. */
  static boolean pause(long millis) {
    try {
      Thread.sleep(millis);
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
