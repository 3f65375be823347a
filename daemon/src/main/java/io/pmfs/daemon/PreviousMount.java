package io.pmfs.daemon;

import io.pmfs.daemon.process.ExternalUnmount;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownDaemon;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.mounts.MountProbe;
import io.pmfs.mounts.MountViewers;
import io.pmfs.mounts.Registration;
import io.pmfs.mounts.Registry;
import io.pmfs.mounts.StandIn;
import io.pmfs.places.Surroundings;
import io.pmfs.settings.MountSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** An earlier mount on a mount point, which may be live, ending or stale, or absent. */
public final class PreviousMount {
  /** Crashes can stack stale mounts; pmfs removes at most this many. */
  private static final int MAX_STALE = 8;

  /** The longest orderly end; see {@code MountCommand}. */
  public static final Duration PATIENCE = Duration.ofSeconds(30);

  private static final Duration SILENT = Duration.ofSeconds(2);
  private static final Duration UNTIL_LOOK = Duration.ofSeconds(1);
  private static final long POLL_MS = 100;

  private final MountSettings settings;
  private final Registry registry;
  private final Invocation invocation;
  private final Duration patience;
  private long end;

  /** Waits up to {@code patience} for a predecessor that is ending. */
  public PreviousMount(
      MountSettings settings, Registry registry, Invocation invocation, Duration patience) {
    this.settings = settings;
    this.registry = registry;
    this.invocation = invocation;
    this.patience = patience;
  }

  /**
   * Waits for a daemon that is ending there, takes the mount point and removes stale mounts. Fails
   * if a live mount is there, or if the daemon does not end in time.
   */
  public Registration replace() throws MountFailure {
    Path mountpoint = settings.mountpoint();
    for (StandIn standIn : registry.standIns(invocation.surroundings().mounts())) {
      if (Path.of(standIn.mountpoint()).equals(mountpoint)) {
        throw MountFailure.usage(mountpoint + ": not mounted: " + standIn.text());
      }
    }
    long begin = System.nanoTime();
    end = begin + patience.toNanos();
    boolean isAnnounced = false;
    while (true) {
      DaemonRecord entry = registry.find(mountpoint);
      entry = entry == null ? ofMount() : entry;
      if (entry != null && isServed(entry)) {
        throw MountFailure.usage(
            "%s: already mounted: pid %d serves %s there; pmfs umount %s first"
                .formatted(mountpoint, entry.pid(), entry.source(), mountpoint));
      }
      Registration taken = entry == null ? registry.register(mountpoint) : null;
      if (taken != null) {
        clear(taken);
        return taken;
      }
      if (!pause()) {
        throw refusal(entry);
      }
      if (!isAnnounced && System.nanoTime() - begin > SILENT.toNanos()) {
        isAnnounced = true;
        invocation.warn(waiting(entry));
      }
    }
  }

  /** Opens a resource that an unmounted predecessor may still hold. */
  public interface Opening<T> {
    /** Fails with {@link ExitStatus#IN_USE} while another process holds it. */
    T open() throws MountFailure;
  }

  /**
   * Opens the resource once an ending daemon has released it; fails at once if a live mount holds
   * it.
   */
  public <T> T await(Opening<T> opening) throws MountFailure {
    long begin = System.nanoTime();
    end = begin + patience.toNanos();
    boolean isAnnounced = false;
    boolean looked = false;
    while (true) {
      try {
        return opening.open();
      } catch (MountFailure e) {
        if (e.exitStatus() != ExitStatus.IN_USE) {
          throw e;
        }
        if (ofSource(ofThisUser(), true) != null || !pause()) {
          throw inUse(e);
        }
        if (!looked && System.nanoTime() - begin > UNTIL_LOOK.toNanos()) {
          looked = true;
          if (isElsewhere()) {
            throw inUse(e);
          }
        }
        if (!isAnnounced && System.nanoTime() - begin > SILENT.toNanos()) {
          isAnnounced = true;
          invocation.warn(
              "%s: waiting for another pmfs, which holds the copies but is not mounted, %d s at most"
                  .formatted(settings.mountpoint(), patience.toSeconds()));
        }
      }
    }
  }

  /** Whether a daemon of the dataset serves only other mount namespaces, which may last. */
  private boolean isElsewhere() throws MountFailure {
    DaemonRecord entry = ofSource(unmounted(KnownMounts.open(invocation.surroundings())), false);
    return entry != null && !viewers(entry).isEmpty();
  }

  private static List<DaemonRecord> unmounted(KnownMounts knownMounts) throws MountFailure {
    List<DaemonRecord> unmounted = new ArrayList<>(knownMounts.running());
    unmounted.addAll(knownMounts.detached());
    return unmounted;
  }

  private List<String> viewers(DaemonRecord entry) {
    MountViewers viewers = new MountViewers(invocation.surroundings());
    return entry.devices().stream()
        .flatMap(device -> viewers.elsewhere(device, entry.source()).stream())
        .toList();
  }

  /**
   * The dataset's daemons of this user. Root may have its own copies of a dataset that a user has
   * mounted.
   */
  private List<DaemonRecord> ofThisUser() throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    return surroundings.isRoot() ? registry.running() : KnownMounts.open(surroundings).mounted();
  }

  /** A daemon of this dataset whose mount exists, or is gone; null if there is none. */
  private @Nullable DaemonRecord ofSource(List<DaemonRecord> running, boolean isMounted)
      throws MountFailure {
    MountTable mounts = invocation.surroundings().mounts();
    for (DaemonRecord entry : running) {
      MountTable.Mount mount = mounts.at(Path.of(entry.mountpoint()));
      boolean isThere = mount != null && mount.isPmfs() && entry.isOf(mount);
      if (isThere == isMounted && settings.source().path().toString().equals(entry.source())) {
        return entry;
      }
    }
    return null;
  }

  /** A failure that names where the dataset is mounted; {@code refusal} if that is unknown. */
  private MountFailure inUse(MountFailure refusal) throws MountFailure {
    KnownMounts knownMounts = KnownMounts.open(invocation.surroundings());
    DaemonRecord mounted = ofSource(knownMounts.mounted(), true);
    DaemonRecord entry = mounted == null ? ofSource(unmounted(knownMounts), false) : mounted;
    if (entry == null) {
      return refusal;
    }
    String user = userOf(entry.pid());
    List<String> viewers = mounted == null ? viewers(entry) : List.of();
    if (!viewers.isEmpty()) {
      return new MountFailure(
          ExitStatus.IN_USE,
          "%s: pid %d of user %s holds its copies and state, and serves it in other mount namespaces: %s; end those, or choose another --tier and --state-dir"
              .formatted(entry.source(), entry.pid(), user, String.join(", ", viewers)),
          refusal);
    }
    return new MountFailure(
        ExitStatus.IN_USE,
        mounted != null
            ? "%s: already mounted on %s by user %s (pid %d), which holds its copies and state; use that mount, or choose another --tier and --state-dir"
                .formatted(entry.source(), entry.mountpoint(), user, entry.pid())
            : "%s: pid %d of user %s, detached from %s, holds its copies and state until its last open file is closed; wait or end it, or choose another --tier and --state-dir"
                .formatted(entry.source(), entry.pid(), user, entry.mountpoint()),
        refusal);
  }

  /** Files in /proc belong to the user of the process. */
  private String userOf(long pid) {
    try {
      Path process = invocation.surroundings().root().resolve("proc").resolve(Long.toString(pid));
      return Files.getOwner(process).getName();
    } catch (IOException e) {
      return "?";
    }
  }

  /** Waits a moment; false once the time is over. */
  private boolean pause() throws MountFailure {
    if (System.nanoTime() - end > 0) {
      return false;
    }
    try {
      Thread.sleep(POLL_MS);
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new MountFailure(ExitStatus.FAILED, settings.mountpoint() + ": interrupted", e);
    }
  }

  private boolean isServed(DaemonRecord entry) throws MountFailure {
    MountTable.Mount mount = mount();
    return mount != null && mount.isPmfs() && entry.isOf(mount);
  }

  /** The daemon of the session mounted there. */
  private @Nullable DaemonRecord ofMount() throws MountFailure {
    MountTable.Mount mount = mount();
    KnownDaemon known = mount != null && mount.isPmfs() ? registry.ofMount(mount) : null;
    return known == null || !known.running() ? null : known.daemon();
  }

  private MountTable.@Nullable Mount mount() throws MountFailure {
    return invocation.surroundings().mounts().at(settings.mountpoint());
  }

  private String waiting(@Nullable DaemonRecord entry) {
    return entry == null
        ? "%s: waiting for another pmfs, which is starting or stopping there, %d s at most"
            .formatted(settings.mountpoint(), patience.toSeconds())
        : "%s: waiting for pmfs (pid %d), which is stopping there, %d s at most"
            .formatted(settings.mountpoint(), entry.pid(), patience.toSeconds());
  }

  private MountFailure refusal(@Nullable DaemonRecord entry) {
    return new MountFailure(
        ExitStatus.FAILED,
        entry == null
            ? "%s: another pmfs is starting or stopping there and has not ended after %d s; see pmfs status, or try again"
                .formatted(settings.mountpoint(), patience.toSeconds())
            : "%s: pmfs (pid %d) is stopping there and has not ended after %d s; see %s, or try again"
                .formatted(
                    settings.mountpoint(), entry.pid(), patience.toSeconds(), entry.logFile()));
  }

  private void clear(Registration taken) throws MountFailure {
    try {
      clearStale();
    } catch (Throwable e) {
      taken.close();
      throw e;
    }
  }

  private void clearStale() throws MountFailure {
    Path mountpoint = settings.mountpoint();
    for (int i = 0; i < MAX_STALE; i++) {
      MountTable.Mount mount = mount();
      if (mount == null || !mount.isPmfs()) {
        return;
      }
      switch (MountProbe.of(mountpoint)) {
        case STALE -> {
          ExternalUnmount.run(mount, true, invocation.surroundings());
          invocation.say(mountpoint + ": removed a stale mount whose daemon had died");
        }
        case HUNG ->
            throw new MountFailure(
                ExitStatus.FAILED,
                mountpoint
                    + ": a pmfs mount that does not answer; run pmfs umount --lazy "
                    + mountpoint
                    + " first");
        default ->
            throw MountFailure.usage(
                "%s: already mounted by a pmfs of another user or runtime directory (source %s);"
                        .formatted(mountpoint, mount.source())
                    + " unmount it first");
      }
    }
  }
}
