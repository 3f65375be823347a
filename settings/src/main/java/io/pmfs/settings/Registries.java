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
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The registries that a command asks: the user's own and those of mounts that root made for users.
 * The latter lie beside root's own, with the user's number at the end of the name: root asks all of
 * them, a user the one of theirs.
 */
public final class Registries {
  private static final Path OF_ROOT = Path.of("run/pmfs");

  /** A successor is there in seconds, unless it is refused or the machine is overloaded. */
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  /** Who waits for longer is told what for. */
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

  /** Makes the user's own runtime directory if need be; waits in silence. */
  public static Registries open(Surroundings surroundings) throws MountFailure {
    return open(surroundings, line -> {});
  }

  /**
   * The same.
   *
   * @param notice takes a line about what is waited for
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
   * The daemon that serves a mount point, or null. A daemon whose mount is detached, and still has
   * files open, is that of nothing that others have mounted there since.
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
    return null;
  }

  /** The same. Where the daemon died and its supervisor starts another, that one is waited for. */
  public Registry.@Nullable Entry await(Path mountpoint) throws MountFailure {
    Wait wait = new Wait(mountpoint);
    Registry.Entry entry = find(mountpoint);
    while (entry == null && isBeingReplaced(mountpoint) && wait.pause()) {
      entry = find(mountpoint);
    }
    return entry;
  }

  /**
   * The daemon that follows one that gives no answer, or null: that one still runs after all the
   * waiting, or none follows it.
   */
  public Registry.@Nullable Entry awaitSuccessor(Registry.Entry silent) throws MountFailure {
    Path mountpoint = Path.of(silent.mountpoint());
    Wait wait = new Wait(mountpoint);
    while (true) {
      Registry.Entry entry = await(mountpoint);
      if (entry == null || entry.pid() != silent.pid()) {
        return entry;
      }
      if (!wait.pause()) {
        return null;
      }
    }
  }

  /** Whether the mount is there and its daemon is gone, or the next one not ready. */
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
    return false;
  }

  /** For the next daemon. */
  private final class Wait {
    private final Path mountpoint;
    private final long start = System.nanoTime();
    private boolean isTold;

    Wait(Path mountpoint) {
      this.mountpoint = mountpoint;
    }

    /** A moment of it; false if it was long enough. */
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

  /** Removes what a daemon left that died, when its mount is gone for good. */
  public void forget(Path mountpoint) throws MountFailure {
    for (Registry registry : all) {
      registry.forget(mountpoint);
    }
  }

  /** All running daemons, by mount point. */
  public List<Registry.Entry> running() throws MountFailure {
    List<Registry.Entry> running = new ArrayList<>();
    for (Registry registry : all) {
      running.addAll(registry.running());
    }
    running.sort(Comparator.comparing(Registry.Entry::mountpoint));
    return running;
  }

  /**
   * The same, with those that follow one that died and are waited for.
   *
   * @param missed takes why a mount whose daemon is being replaced is not among them
   */
  public List<Registry.Entry> awaitAll(Consumer<MountFailure> missed) throws MountFailure {
    List<Registry.Entry> serving = running();
    Set<String> known = serving.stream().map(Registry.Entry::mountpoint).collect(toSet());
    for (MountTable.Mount mount : surroundings.mounts().all()) {
      if (mount.isPmfs() && known.add(mount.mountpoint().toString())) {
        Registry.Entry entry = await(mount.mountpoint());
        if (entry != null) {
          serving.add(entry);
        } else if (isBeingReplaced(mount.mountpoint())) {
          missed.accept(absence(mount.mountpoint()));
        }
      }
    }
    serving.sort(Comparator.comparing(Registry.Entry::mountpoint));
    return serving;
  }

  /** Each of them, the user's own first. */
  public List<Registry> all() {
    return all;
  }

  /** Why nobody here serves a mount point where the kernel has a mount of pmfs. */
  public MountFailure absence(Path mountpoint) throws MountFailure {
    if (MountProbe.of(mountpoint) == MountProbe.STALE) {
      return new MountFailure(
          ExitStatus.NOT_MOUNTED,
          mountpoint + ": a stale mount, whose daemon died; pmfs umount " + mountpoint);
    }
    if (!isBeingReplaced(mountpoint)) {
      return new MountFailure(
          ExitStatus.NOT_MOUNTED,
          mountpoint + ": mounted by a pmfs of another user or runtime directory; ask there");
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
