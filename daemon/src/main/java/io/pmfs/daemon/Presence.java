package io.pmfs.daemon;

import io.pmfs.settings.MountFailure;
import io.pmfs.settings.Registration;
import io.pmfs.settings.Registry;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What other commands find a daemon by: its place in the registry, and the control socket. The
 * place is that of who is mounted there: a daemon whose mount is detached, and has open files to
 * serve, gives it back for others to mount. Used by one thread.
 */
final class Presence implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Presence.class);

  /** Who has just unmounted lazily waits so long for the end, and asks for nothing after that. */
  static final Duration DETACHED = Duration.ofSeconds(3);

  private final Path mountpoint;
  private final Registry registry;
  private final ControlRequests requests;
  private final Function<Path, Registry.Entry> entry;
  private @Nullable Registration registration;
  private @Nullable ControlServer control;
  private long detachedSince;
  private boolean isDetached;
  private boolean isTroubled;

  /**
   * Not seen yet.
   *
   * @param taken the place, if it was to be had already
   * @param entry what is told of the daemon, by its control socket
   */
  Presence(
      Path mountpoint,
      Registry registry,
      @Nullable Registration taken,
      ControlRequests requests,
      Function<Path, Registry.Entry> entry) {
    this.mountpoint = mountpoint;
    this.registry = registry;
    this.registration = taken;
    this.requests = requests;
    this.entry = entry;
  }

  /** Listens, and says so; does nothing without a place. */
  void appear() throws IOException {
    Registration place = registration;
    if (place == null || control != null) {
      return;
    }
    ControlServer server = ControlServer.start(place.socket(), requests);
    control = server;
    place.publish(entry.apply(server.socket()));
    log.info("{}: control socket {}", mountpoint, server.socket());
  }

  /** Takes the place that is due to a daemon, or gives it back. */
  void update(boolean isAtMountpoint) {
    if (isAtMountpoint) {
      isDetached = false;
      if (registration == null || control == null) {
        appearQuietly();
      }
    } else if (!isDetached) {
      isDetached = true;
      detachedSince = System.nanoTime();
    } else if (registration != null && System.nanoTime() - detachedSince > DETACHED.toNanos()) {
      log.info("{}: detached; what is open there is served until it is closed", mountpoint);
      close();
    }
  }

  private void appearQuietly() {
    try {
      if (registration == null) {
        registration = registry.register(mountpoint);
      }
      appear();
      isTroubled = false;
    } catch (IOException | MountFailure e) {
      if (!isTroubled) {
        log.warn("{}: commands do not find this daemon for now: {}", mountpoint, e.getMessage());
      }
      isTroubled = true;
    }
  }

  /** Is not found any more. Idempotent. */
  @Override
  public void close() {
    fallSilent();
    Registration place = registration;
    registration = null;
    if (place != null) {
      place.close();
    }
  }

  /** Listens no more, and keeps the place until all is stopped. */
  void fallSilent() {
    ControlServer server = control;
    control = null;
    if (server != null) {
      server.close();
    }
  }
}
