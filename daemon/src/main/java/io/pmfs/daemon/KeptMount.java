package io.pmfs.daemon;

import io.pmfs.daemon.process.BindMount;
import io.pmfs.daemon.process.ExternalUnmount;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.Reason;
import io.pmfs.mounts.MountProbe;
import io.pmfs.mounts.Registry;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A hidden mount of a session in the runtime directory. For a time ({@code --linger}) it keeps the
 * session alive after its last mount point was unmounted, so that another mount of the dataset can
 * join. A daemon that takes over restarts the time.
 */
public final class KeptMount {
  private static final Logger log = LoggerFactory.getLogger(KeptMount.class);
  private static final int ATTEMPTS = 3;

  private final Duration time;
  private final Surroundings surroundings;
  private final @Nullable Supervision supervision;
  private final LongSupplier nanoTime;

  /** Since when there has been no other mount; null while there is one. */
  private volatile @Nullable Long aloneSince;

  /**
   * Does not mount yet.
   *
   * @param time how long to keep the session; zero: not at all
   */
  KeptMount(
      Duration time,
      Surroundings surroundings,
      @Nullable Supervision supervision,
      LongSupplier nanoTime) {
    this.time = time;
    this.surroundings = surroundings;
    this.supervision = supervision;
    this.nanoTime = nanoTime;
  }

  /** Adds the hidden mount to a session that has just been mounted. */
  void begin(Path mountpoint, @Nullable String device, Registry registry) throws MountFailure {
    Supervision tie = supervision;
    if (time.isZero() || device == null) {
      return;
    }
    String problem =
        tie != null && tie.mountsForUser()
            ? tie.keep(mountpoint)
            : bind(mountpoint, device, registry.keptPlace(mountpoint, device));
    if (!problem.isEmpty()) {
      throw new MountFailure(
          ExitStatus.FAILED, mountpoint + ": its daemon cannot be kept (--linger): " + problem);
    }
  }

  /** Another pmfs may remove the directory while nothing is mounted there. */
  private static String bind(Path mountpoint, String device, Path place) {
    String problem = "";
    for (int i = 0; i < ATTEMPTS; i++) {
      try {
        Files.createDirectories(place);
        // The path may contain symbolic links, such as /var/run.
        problem = BindMount.make(mountpoint, device, place.toRealPath(), false);
      } catch (IOException e) {
        problem = place + ": " + Reason.of(e);
      }
      if (problem.isEmpty()) {
        return "";
      }
    }
    return problem;
  }

  /** Ends the session when its time is over. Call this about once a second. */
  void look(@Nullable String device) {
    if (time.isZero() || device == null) {
      return;
    }
    try {
      List<Path> places = surroundings.mounts().placesOf(device);
      if (places.isEmpty() || !places.stream().allMatch(Registry::isKept)) {
        aloneSince = null;
      } else if (aloneSince == null) {
        aloneSince = nanoTime.getAsLong();
        log.info("no mount point is left; the daemon stays for another {} s", time.toSeconds());
      } else if (Duration.ZERO.equals(left())) {
        log.info("no mount has joined within {} s: the daemon ends", time.toSeconds());
        end(device);
      }
    } catch (MountFailure e) {
      log.warn("--linger: {}", e.line());
    }
  }

  /** How much longer a session without mount points is kept; null if it has one. */
  @Nullable Duration left() {
    Long since = aloneSince;
    if (since == null) {
      return null;
    }
    Duration left = time.minusNanos(nanoTime.getAsLong() - since);
    return left.isNegative() ? Duration.ZERO : left;
  }

  /** Removes the hidden mount, so that the session ends with its mount points. */
  void end(@Nullable String device) {
    if (time.isZero()) {
      return;
    }
    try {
      Supervision tie = supervision;
      if (tie != null && tie.mountsForUser()) {
        tie.endKeeping();
        return;
      }
      MountTable mounts = surroundings.mounts();
      for (Path place : mounts.placesOf(device)) {
        MountTable.Mount mount = Registry.isKept(place) ? mounts.at(place) : null;
        if (mount != null) {
          ExternalUnmount.run(mount, true, surroundings);
        }
      }
    } catch (MountFailure e) {
      log.warn("--linger: {}", e.line());
    }
  }

  /** Removes the directories that ended sessions left behind. */
  public static void sweep(Registry registry, Surroundings surroundings) throws MountFailure {
    for (Path place : registry.keptPlaces()) {
      MountTable.Mount mount = surroundings.mounts().at(place);
      if (mount != null && MountProbe.of(place) == MountProbe.STALE) {
        ExternalUnmount.run(mount, true, surroundings);
        mount = null;
      }
      if (mount == null) {
        try {
          Files.deleteIfExists(place);
        } catch (IOException e) {
          log.debug("{}: {}", place, Reason.of(e));
        }
      }
    }
  }
}
