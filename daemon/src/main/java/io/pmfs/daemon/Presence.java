package io.pmfs.daemon;

import io.pmfs.daemon.control.ControlRequests;
import io.pmfs.daemon.control.ControlServer;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.Registration;
import io.pmfs.mounts.Registry;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How commands find a daemon: its place in the registry, and its control socket. The place of a
 * mount point belongs to the daemon mounted there. A daemon whose detached mount still serves open
 * files moves to a separate place, so that another can mount. Not thread-safe, except for {@link
 * #refresh}.
 */
final class Presence implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Presence.class);

  /** A command that has unmounted lazily needs the daemon no longer than this. */
  static final Duration DETACHED = Duration.ofSeconds(3);

  private final Path mountpoint;
  private final Registry registry;
  private final ControlRequests requests;
  private final Supplier<DaemonRecord> entry;
  private @Nullable Registration registration;
  private @Nullable DaemonRecord published; // GUARDED_BY(this), as is closing the registration

  /** Whether the place is that of a detached mount. */
  private boolean isMoved;

  private @Nullable ControlServer control;
  private long detachedSince;
  private boolean isDetached;
  private boolean isTroubled;

  /**
   * Not visible before {@link #appear}.
   *
   * @param taken the place, if the daemon already has it
   * @param entry the daemon's entry, whose control socket is not known yet
   */
  Presence(
      Path mountpoint,
      Registry registry,
      @Nullable Registration taken,
      ControlRequests requests,
      Supplier<DaemonRecord> entry) {
    this.mountpoint = mountpoint;
    this.registry = registry;
    this.registration = taken;
    this.requests = requests;
    this.entry = entry;
  }

  /** Listens and publishes the entry; does nothing without a place. */
  void appear() throws IOException {
    Registration place = registration;
    if (place == null || control != null) {
      return;
    }
    ControlServer server = ControlServer.start(place.socket(), requests);
    control = server;
    publish(place, entry.get().withSocket(server.socket(), isMoved));
    log.info("{}: control socket {}", mountpoint, server.socket());
  }

  private synchronized void publish(Registration place, DaemonRecord now) throws IOException {
    place.publish(now);
    published = now;
  }

  /** Publishes the present mounts, if the daemon has a place. Any thread may call it. */
  synchronized void refresh() {
    Registration place = registration;
    DaemonRecord before = published;
    List<String> devices = entry.get().devices();
    if (place == null
        || before == null
        || devices.isEmpty() // the daemon is about to end
        || before.devices().equals(devices)) {
      return;
    }
    try {
      publish(place, before.withSessions(devices));
    } catch (IOException e) {
      log.warn("{}: its mount points are not published: {}", mountpoint, Reason.of(e));
    }
  }

  /**
   * Takes the place of the mount point or, some time after detaching, that of the detached mount.
   */
  void update(boolean isAtMountpoint) {
    if (isAtMountpoint) {
      isDetached = false;
      beAt(false);
    } else if (!isDetached) {
      isDetached = true;
      detachedSince = System.nanoTime();
    } else if (System.nanoTime() - detachedSince > DETACHED.toNanos()) {
      beAt(true);
    }
    refresh();
  }

  private void beAt(boolean isPlaceOfDetached) {
    if (isPlaceOfDetached && !isMoved) {
      leaveMountpoint();
    } else if (isMoved && !isPlaceOfDetached) {
      // Closed first, because registering there releases the locks of detached mounts, including
      // ours.
      close();
      isMoved = false;
    }
    if (registration == null || control == null) {
      appearQuietly();
    }
  }

  /** A daemon with other mount points stays visible: their records name its socket. */
  private void leaveMountpoint() {
    log.info("{}: detached; open files are served until they are closed", mountpoint);
    ControlServer server = control;
    Registration place;
    synchronized (this) {
      place = registration;
      registration = null;
      published = null;
    }
    control = null;
    isMoved = true;
    try {
      appearQuietly();
    } finally {
      if (place != null) {
        place.close();
      }
      if (server != null) {
        server.close();
      }
    }
  }

  private void appearQuietly() {
    try {
      if (registration == null) {
        registration =
            isMoved
                ? registry.registerDetached(mountpoint, entry.get().device())
                : registry.register(mountpoint);
      }
      appear();
      isTroubled = false;
    } catch (IOException | MountFailure | OutOfMemoryError e) {
      if (!isTroubled) {
        log.warn("{}: commands cannot find this daemon for now: {}", mountpoint, e.getMessage());
      }
      isTroubled = true;
    }
  }

  /**
   * See {@link Registration#markSaved}. Commands look for it in the place of the mount point; does
   * nothing if another daemon has that.
   */
  void markSaved() {
    try {
      if (isMoved) {
        close();
        registration = registry.register(mountpoint);
      }
      Registration place = registration;
      if (place != null) {
        place.markSaved();
      }
    } catch (IOException | MountFailure e) {
      log.warn("{}: {}", mountpoint, Reason.of(e));
    }
  }

  /** Stops listening and releases the place. Idempotent. */
  @Override
  public void close() {
    fallSilent();
    synchronized (this) {
      Registration place = registration;
      registration = null;
      published = null;
      if (place != null) {
        place.close();
      }
    }
  }

  /** Stops listening, but keeps the place until everything has stopped. */
  void fallSilent() {
    ControlServer server = control;
    control = null;
    if (server != null) {
      server.close();
    }
  }
}
