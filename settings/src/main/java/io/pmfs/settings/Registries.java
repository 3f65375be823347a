package io.pmfs.settings;

import static java.util.stream.Collectors.toSet;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The registries that a command reads: the user's own and those of mounts that root made for users.
 * The latter are next to root's own, and their names end in the user's number: root reads all of
 * them, a user only their own.
 */
public final class Registries {
  private static final Path OF_ROOT = Path.of("run/pmfs");

  /** A successor starts within seconds, unless it is refused or the machine is overloaded. */
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  /** A longer wait is reported to the user. */
  private static final Duration UNTOLD = Duration.ofSeconds(2);

  private static final long POLL_MS = 100;

  private final List<Registry> all;
  private final Surroundings surroundings;
  private final Consumer<String> notice;
  private final Duration patience;

  private Registries(
      List<Registry> all, Surroundings surroundings, Consumer<String> notice, Duration patience) {
    this.all = all;
    this.surroundings = surroundings;
    this.notice = notice;
    this.patience = patience;
  }

  /** Opens the registries, and makes the user's runtime directory if necessary; waits silently. */
  public static Registries open(Surroundings surroundings) throws MountFailure {
    return open(surroundings, line -> {});
  }

  /**
   * The same.
   *
   * @param notice gets a line that says what the command waits for
   */
  public static Registries open(Surroundings surroundings, Consumer<String> notice)
      throws MountFailure {
    return open(surroundings, notice, PATIENCE);
  }

  static Registries open(Surroundings surroundings, Consumer<String> notice, Duration patience)
      throws MountFailure {
    Registry own = Registry.open(surroundings);
    List<Registry> all = new ArrayList<>(List.of(own));
    if (surroundings.isRoot()) {
      addUsers(own.directory(), all);
    } else {
      Path made = surroundings.root().resolve(OF_ROOT).resolveSibling("pmfs-" + surroundings.uid());
      if (!made.equals(own.directory()) && isOwnedBy(made, surroundings.uid())) {
        all.add(Registry.own(made));
      }
    }
    return new Registries(all, surroundings, notice, patience);
  }

  private static void addUsers(Path ofRoot, List<Registry> all) throws MountFailure {
    Path parent = ofRoot.resolveSibling("");
    String prefix = ofRoot.getFileName() + "-";
    try (DirectoryStream<Path> beside = Files.newDirectoryStream(parent)) {
      for (Path directory : beside) {
        String name = directory.getFileName().toString();
        String number = name.startsWith(prefix) ? name.substring(prefix.length()) : "";
        if (number.matches("\\d{1,10}") && isOwnedBy(directory, Long.parseLong(number))) {
          all.add(Registry.ofUser(directory, Long.parseLong(number)));
        }
      }
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, parent + ": " + Reason.of(e), e);
    }
  }

  private static boolean isOwnedBy(Path directory, long uid) {
    try {
      Object owner = Files.getAttribute(directory, "unix:uid", LinkOption.NOFOLLOW_LINKS);
      return Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)
          && owner instanceof Integer number
          && Integer.toUnsignedLong(number) == uid;
    } catch (IOException e) {
      return false;
    }
  }

  /**
   * The daemon that serves a mount point, or null. A daemon whose detached mount still has open
   * files does not serve a later mount at the same place.
   */
  public Registry.@Nullable Entry find(Path mountpoint) throws MountFailure {
    MountTable.Mount mount = null;
    boolean isMountKnown = false;
    for (Registry registry : all) {
      Registry.Entry entry = registry.find(mountpoint);
      if (entry != null && !isMountKnown) {
        mount = surroundings.mounts().at(mountpoint);
        isMountKnown = true;
      }
      if (entry != null && (mount == null || entry.isOf(mount))) {
        return entry;
      }
    }
    return ofMount(isMountKnown ? mount : surroundings.mounts().at(mountpoint));
  }

  /** The daemon of a session that is mounted there and at other places; null if there is none. */
  private Registry.@Nullable Entry ofMount(MountTable.@Nullable Mount mount) throws MountFailure {
    Registry.Known known = mount == null ? null : last(mount);
    return known == null || !known.running() ? null : known.entry();
  }

  private Registry.@Nullable Known last(MountTable.Mount mount) throws MountFailure {
    for (Registry registry : mount.isPmfs() ? all : List.<Registry>of()) {
      Registry.Known known = registry.ofDevice(mount.device());
      if (known != null) {
        return known;
      }
    }
    return null;
  }

  /** The same, but waits for the next daemon if one died and its supervisor starts another. */
  public Registry.@Nullable Entry await(Path mountpoint) throws MountFailure {
    Wait wait = new Wait(mountpoint);
    Registry.Entry entry = find(mountpoint);
    while (entry == null && isBeingReplaced(mountpoint) && wait.pause()) {
      entry = find(mountpoint);
    }
    return entry;
  }

  /**
   * Waits for the successor of a daemon that does not answer; one that has moved its socket, as its
   * mount was detached or is back, counts as its own. Null if the silent daemon still runs after
   * the wait, or has no successor.
   */
  public Registry.@Nullable Entry awaitSuccessor(Registry.Entry silent) throws MountFailure {
    Path mountpoint = Path.of(silent.mountpoint());
    Wait wait = new Wait(mountpoint);
    while (true) {
      Registry.Entry entry = await(mountpoint);
      if (entry == null
          || entry.pid() != silent.pid()
          || !Objects.equals(entry.socket(), silent.socket())) {
        return entry;
      }
      if (!wait.pause()) {
        return null;
      }
    }
  }

  /** Whether the mount exists, but its daemon is gone or the next one is not ready. */
  private boolean isBeingReplaced(Path mountpoint) throws MountFailure {
    MountTable.Mount mount = surroundings.mounts().at(mountpoint);
    if (mount == null || !mount.isPmfs()) {
      return false;
    }
    for (Registry registry : all) {
      Registry.Entry last = registry.last(mountpoint);
      if (last == null ? registry.isRunning(mountpoint) : last.isOf(mount)) {
        // Without a supervisor the mount died with its daemon.
        return MountProbe.of(mountpoint) != MountProbe.STALE;
      }
    }
    return last(mount) != null && MountProbe.of(mountpoint) != MountProbe.STALE;
  }

  /** A wait for the next daemon. */
  private final class Wait {
    private final Path mountpoint;
    private final long start = System.nanoTime();
    private boolean isTold;

    Wait(Path mountpoint) {
      this.mountpoint = mountpoint;
    }

    /** Sleeps for a moment; false if the time is up. */
    boolean pause() {
      long waited = System.nanoTime() - start;
      if (waited > patience.toNanos()) {
        return false;
      }
      if (waited > UNTOLD.toNanos() && !isTold) {
        isTold = true;
        notice.accept(mountpoint + ": its daemon is being replaced; waiting for the next one");
      }
      try {
        Thread.sleep(POLL_MS);
        return true;
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return false;
      }
    }
  }

  /** Removes the files of a dead daemon whose mount is gone for good. */
  public void forget(Path mountpoint) throws MountFailure {
    for (Registry registry : all) {
      registry.forget(mountpoint);
    }
    sweepHolders();
  }

  /** Removes this user's records of holders whose mounts are gone. */
  public void sweepHolders() throws MountFailure {
    for (Registry registry : all) {
      if (registry.stranger() < 0) {
        registry.sweepHolders(surroundings);
      }
    }
  }

  /** All running daemons at their mount points, sorted by those. */
  public List<Registry.Entry> running() throws MountFailure {
    List<Registry.Entry> running = new ArrayList<>();
    for (Registry registry : all) {
      running.addAll(registry.running());
    }
    running.sort(Comparator.comparing(Registry.Entry::mountpoint));
    return running;
  }

  /** All daemons that serve the open files of detached mounts, sorted by their mount points. */
  public List<Registry.Entry> detached() throws MountFailure {
    List<Registry.Entry> detached = new ArrayList<>();
    for (Registry registry : all) {
      detached.addAll(registry.detached());
    }
    detached.sort(Comparator.comparing(Registry.Entry::mountpoint));
    return detached;
  }

  /** All running daemons, once for each of their mount points, and for those where they began. */
  public List<Registry.Entry> mounted() throws MountFailure {
    List<Registry.Entry> mounted = new ArrayList<>(running());
    List<Registry.Entry> sessions = new ArrayList<>(mounted);
    sessions.addAll(detached());
    MountTable mounts = surroundings.mounts();
    for (Registry.Entry session : sessions) {
      for (Path place : mounts.placesOfAny(session.devices())) {
        if (session.detached() || !place.toString().equals(session.mountpoint())) {
          mounted.add(session.named(place));
        }
      }
    }
    return mounted;
  }

  /** Who mounted a session at a mount point; null if that is not recorded. */
  public @Nullable Holder holder(Path mountpoint, String device) {
    for (Registry registry : all) {
      Holder holder = registry.holder(mountpoint, device);
      if (holder != null) {
        return holder;
      }
    }
    return null;
  }

  /**
   * Says that a mount at the path or above it was detached; null if no daemon serves such a one.
   */
  public @Nullable MountFailure detachment(Path path) throws MountFailure {
    for (Registry.Entry entry : detached()) {
      if (path.startsWith(entry.mountpoint())) {
        return new MountFailure(
            ExitStatus.NOT_MOUNTED,
            "%s: no longer mounted: it was detached, and pid %d serves the files that are still open; see pmfs status"
                .formatted(entry.mountpoint(), entry.pid()));
      }
    }
    return null;
  }

  /** Why a command finds no daemon at a mount point where the kernel has no pmfs mount either. */
  public MountFailure notMounted(Path mountpoint) throws MountFailure {
    MountFailure detached = detachment(mountpoint);
    return detached != null
        ? detached
        : new MountFailure(
            ExitStatus.NOT_MOUNTED, mountpoint + ": not mounted by pmfs; see pmfs status");
  }

  /**
   * The same as {@link #running}, after waiting for the successors of daemons that died.
   *
   * @param missed gets the reason why a mount whose daemon is being replaced is missing
   */
  public List<Registry.Entry> awaitAll(Consumer<MountFailure> missed) throws MountFailure {
    List<Registry.Entry> serving = running();
    Set<String> known = serving.stream().map(Registry.Entry::mountpoint).collect(toSet());
    Set<String> sessions =
        Stream.concat(serving.stream(), detached().stream())
            .flatMap(entry -> entry.devices().stream())
            .collect(toSet());
    for (MountTable.Mount mount : surroundings.mounts().all()) {
      boolean isKnown = !mount.isPmfs() || sessions.contains(mount.device());
      if (!isKnown && known.add(mount.mountpoint().toString())) {
        Registry.Entry entry = await(mount.mountpoint());
        if (entry != null) {
          serving.add(entry);
          sessions.addAll(entry.devices());
        } else if (isBeingReplaced(mount.mountpoint())) {
          missed.accept(absence(mount.mountpoint()));
        }
      }
    }
    serving.sort(Comparator.comparing(Registry.Entry::mountpoint));
    return serving;
  }

  /** All registries, the user's own first. */
  public List<Registry> all() {
    return all;
  }

  /** Why no daemon of these registries serves a pmfs mount that the kernel has. */
  public MountFailure absence(Path mountpoint) throws MountFailure {
    if (MountProbe.of(mountpoint) == MountProbe.STALE) {
      return new MountFailure(
          ExitStatus.NOT_MOUNTED,
          mountpoint + ": a stale mount: its daemon died; run pmfs umount " + mountpoint);
    }
    if (!isBeingReplaced(mountpoint)) {
      return new MountFailure(
          ExitStatus.NOT_MOUNTED,
          mountpoint
              + ": mounted by another user, or with another PMFS_RUNTIME_DIR; run this command in"
              + " the same way");
    }
    String log = "";
    for (Registry registry : all) {
      Registry.Entry last = registry.last(mountpoint);
      log = log.isEmpty() && last != null ? "; see " + last.logFile() : log;
    }
    return new MountFailure(
        ExitStatus.FAILED,
        mountpoint + ": its daemon died, and the next one is not ready yet" + log);
  }
}
