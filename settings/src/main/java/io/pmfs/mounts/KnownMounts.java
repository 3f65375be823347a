package io.pmfs.mounts;

import static java.util.stream.Collectors.toSet;

import io.pmfs.fuse.system.StrangersDirectory;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.Reason;
import io.pmfs.machine.TimeSpan;
import io.pmfs.places.Surroundings;
import io.pmfs.posix.DaemonThread;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The mounts that a command sees: those of the user's own {@link Registry}, and those that root
 * made for users. The latter are in registries next to root's own, with names that end in the
 * user's id: root reads all of them, a user only their own.
 */
public final class KnownMounts {
  private static final Path OF_ROOT = Path.of("run/pmfs");

  /** Longer than a successor takes to start, unless it is refused or the machine is overloaded. */
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  /** Longer than a daemon takes to publish its new socket, unless the machine is overloaded. */
  private static final Duration MOVE = Duration.ofSeconds(5);

  /** The time limit for reading all registries of other users together. */
  private static final Duration STRANGERS_LIMIT = Duration.ofSeconds(5);

  /** How long a list of all mounts waits for the successors of other users' daemons. */
  private static final Duration STRANGERS_PATIENCE = Duration.ofSeconds(5);

  /** The limit of mounts without a daemon that are examined for one other user. */
  private static final int MOST_WITHOUT_DAEMON = 16;

  private final List<Registry> all;
  private final Surroundings surroundings;
  private final Consumer<String> notice;
  private final Duration patience;

  /** Lines already reported about registries of other users. */
  private final Set<String> reported = ConcurrentHashMap.newKeySet();

  private KnownMounts(
      List<Registry> all, Surroundings surroundings, Consumer<String> notice, Duration patience) {
    this.all = all;
    this.surroundings = surroundings;
    this.notice = notice;
    this.patience = patience;
  }

  /** Opens the registries, creating the user's runtime directory if necessary; waits silently. */
  public static KnownMounts open(Surroundings surroundings) throws MountFailure {
    return open(surroundings, line -> {});
  }

  /**
   * Opens the registries, creating the user's runtime directory if necessary.
   *
   * @param notice receives a line about each long wait
   */
  public static KnownMounts open(Surroundings surroundings, Consumer<String> notice)
      throws MountFailure {
    return open(surroundings, notice, PATIENCE);
  }

  static KnownMounts open(Surroundings surroundings, Consumer<String> notice, Duration patience)
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
    return new KnownMounts(all, surroundings, notice, patience);
  }

  private static void addUsers(Path ofRoot, List<Registry> all) throws MountFailure {
    Path parent = ofRoot.resolveSibling("");
    String prefix = ofRoot.getFileName() + "-";
    try (DirectoryStream<Path> beside = Files.newDirectoryStream(parent)) {
      for (Path directory : beside) {
        String name = directory.getFileName().toString();
        String number = name.startsWith(prefix) ? name.substring(prefix.length()) : "";
        if (number.matches("\\d{1,10}") && isOfStranger(directory, Long.parseLong(number))) {
          all.add(Registry.ofUser(directory, Long.parseLong(number)));
        }
      }
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, parent + ": " + Reason.of(e), e);
    }
  }

  /** Enters no mount: one that the user made there may never answer. */
  private static boolean isOfStranger(Path directory, long uid) {
    try {
      StrangersDirectory.open(directory, uid).close();
      return true;
    } catch (IOException e) {
      return false;
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

  private interface Question<T> {
    T ask(Registry registry) throws MountFailure;
  }

  private record Answer<T>(Registry registry, T value) {}

  /**
   * Queries registries: those of other users concurrently and with a time limit. One that cannot be
   * read is reported and left out.
   */
  private <T> List<Answer<T>> ask(List<Registry> asked, Question<T> question) throws MountFailure {
    List<FutureTask<T>> tasks = new ArrayList<>();
    for (Registry registry : asked) {
      FutureTask<T> task = new FutureTask<>(() -> question.ask(registry));
      tasks.add(task);
      if (registry.stranger() >= 0) {
        // It may hang in the kernel: then the thread must not keep the process alive.
        DaemonThread.start("strangers", task);
      }
    }
    long deadline = System.nanoTime() + STRANGERS_LIMIT.toNanos();
    List<Answer<T>> answers = new ArrayList<>();
    for (int i = 0; i < tasks.size(); i++) {
      Registry registry = asked.get(i);
      if (registry.stranger() < 0) {
        answers.add(new Answer<>(registry, question.ask(registry)));
        continue;
      }
      try {
        long left = Math.max(0, deadline - System.nanoTime());
        answers.add(new Answer<>(registry, tasks.get(i).get(left, TimeUnit.NANOSECONDS)));
      } catch (TimeoutException e) {
        tasks.get(i).cancel(true);
        report(
            "%s: user %d: cannot be read within %s"
                .formatted(
                    registry.directory(), registry.stranger(), TimeSpan.format(STRANGERS_LIMIT)));
      } catch (ExecutionException e) {
        report(
            e.getCause() instanceof MountFailure failure
                ? failure.line()
                : "%s: user %d: %s"
                    .formatted(registry.directory(), registry.stranger(), e.getCause()));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new MountFailure(ExitStatus.FAILED, "interrupted", e);
      }
    }
    return answers;
  }

  /** Reports each line once. */
  private void report(String line) {
    if (reported.add(line)) {
      notice.accept(line);
    }
  }

  /**
   * The registries that may contain the daemon of a mount: of other users' registries, only that of
   * the mount's user.
   */
  private List<Registry> of(MountTable.@Nullable Mount mount) {
    return mount == null ? all : all.stream().filter(one -> isOf(mount, one)).toList();
  }

  private static boolean isOf(MountTable.Mount mount, Registry registry) {
    return registry.stranger() < 0 || registry.stranger() == mount.userId();
  }

  /**
   * The daemon that serves a mount point, or null. A daemon whose detached mount still has open
   * files does not serve a later mount at the same place.
   */
  public @Nullable DaemonRecord find(Path mountpoint) throws MountFailure {
    List<Answer<Optional<DaemonRecord>>> found =
        ask(
            of(surroundings.mounts().at(mountpoint)),
            registry -> Optional.ofNullable(registry.find(mountpoint)));
    // Read after the daemons' records, which they write after mounting.
    MountTable mounts = surroundings.mounts();
    MountTable.Mount mount = mounts.at(mountpoint);
    for (Answer<Optional<DaemonRecord>> answer : found) {
      DaemonRecord entry = answer.value().orElse(null);
      if (entry != null
          && (mount == null || (isOf(mount, answer.registry()) && entry.isOf(mount)))) {
        return vetted(entry, answer.registry(), mounts);
      }
    }
    return ofMount(mount);
  }

  /** The record without device numbers of other users' mounts that it claims. */
  private static DaemonRecord vetted(DaemonRecord entry, Registry registry, MountTable mounts) {
    if (registry.stranger() < 0) {
      return entry;
    }
    return entry.withSessions(
        entry.devices().stream()
            .filter(
                device -> {
                  MountTable.Mount mount = mounts.of(device);
                  return mount == null || isOf(mount, registry);
                })
            .toList());
  }

  /**
   * The daemon of a session with several mount points, found by one of them; null if there is none.
   */
  private @Nullable DaemonRecord ofMount(MountTable.@Nullable Mount mount) throws MountFailure {
    KnownDaemon known = mount == null ? null : last(mount);
    return known == null || !known.running() ? null : known.daemon();
  }

  private @Nullable KnownDaemon last(MountTable.Mount mount) throws MountFailure {
    if (!mount.isPmfs()) {
      return null;
    }
    MountTable mounts = surroundings.mounts();
    for (Answer<Optional<KnownDaemon>> answer :
        ask(of(mount), registry -> Optional.ofNullable(registry.ofMount(mount)))) {
      if (answer.value().isPresent()) {
        KnownDaemon known = answer.value().get();
        return known.with(vetted(known.daemon(), answer.registry(), mounts));
      }
    }
    return null;
  }

  /**
   * Like {@link #find}, but waits for the next daemon if one died and its supervisor starts
   * another.
   */
  public @Nullable DaemonRecord await(Path mountpoint) throws MountFailure {
    return await(mountpoint, patience);
  }

  private @Nullable DaemonRecord await(Path mountpoint, Duration limit) throws MountFailure {
    Wait wait = new Wait(limit, notice);
    DaemonRecord entry = find(mountpoint);
    while (entry == null && isBeingReplaced(mountpoint) && wait.pause(replacement(mountpoint))) {
      entry = find(mountpoint);
    }
    return entry;
  }

  /**
   * Waits for the successor of a daemon that does not answer. The same daemon at a new socket,
   * which it opens when its mount is detached or attached again, counts as a successor. Null if the
   * silent daemon still runs after the wait, or has no successor.
   */
  public @Nullable DaemonRecord awaitSuccessor(DaemonRecord silent) throws MountFailure {
    if (!silent.mayBeReplaced()) {
      return awaitNewRecord(silent);
    }
    Wait wait = new Wait(patience, notice);
    while (true) {
      DaemonRecord entry = await(placeOf(silent));
      if (entry == null) {
        return awaitNewRecord(silent);
      }
      if (entry.pid() != silent.pid() || !Objects.equals(entry.socket(), silent.socket())) {
        return entry;
      }
      if (!wait.pause(replacement(Path.of(silent.mountpoint())))) {
        return null;
      }
    }
  }

  private static String replacement(Path mountpoint) {
    return mountpoint + ": its daemon is being replaced; waiting for the next one";
  }

  /**
   * Waits for the new record of a daemon that moves its socket. Null if it has died or publishes
   * none.
   */
  public @Nullable DaemonRecord awaitMove(DaemonRecord moving) throws MountFailure {
    DaemonRecord entry = awaitNewRecord(moving);
    return entry == null || entry.pid() != moving.pid() ? null : entry;
  }

  private @Nullable DaemonRecord awaitNewRecord(DaemonRecord moving) throws MountFailure {
    Wait wait = new Wait(MOVE, line -> {});
    do {
      Path place = placeOf(moving);
      MountTable.Mount mount = surroundings.mounts().at(place);
      DaemonRecord entry = find(place);
      if (entry != null
          && (entry.pid() != moving.pid() || !Objects.equals(entry.socket(), moving.socket()))) {
        return entry;
      }
      if (mount == null || !mount.isPmfs() || !isAlive(moving.pid())) {
        return null;
      }
    } while (wait.pause(""));
    return null;
  }

  private static boolean isAlive(long pid) {
    return ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false);
  }

  /** A mount point of the daemon, preferably the one in its record; that one if it has none. */
  public Path placeOf(DaemonRecord daemon) throws MountFailure {
    Path own = Path.of(daemon.mountpoint());
    List<Path> places = surroundings.mounts().places(daemon::shows);
    return places.isEmpty() || places.contains(own) ? own : places.get(0);
  }

  /** Whether the mount exists, but its daemon is gone or the next one is not ready. */
  private boolean isBeingReplaced(Path mountpoint) throws MountFailure {
    MountTable.Mount mount = surroundings.mounts().at(mountpoint);
    if (mount == null || !mount.isPmfs()) {
      return false;
    }
    for (Answer<Boolean> isKnown :
        ask(
            of(mount),
            registry -> {
              DaemonRecord last = registry.last(mountpoint);
              return last == null
                  ? registry.isRunning(mountpoint)
                  : last.isOf(mount) && last.mayBeReplaced();
            })) {
      if (isKnown.value()) {
        // Without a supervisor the mount died with its daemon.
        return MountProbe.of(mountpoint) != MountProbe.STALE;
      }
    }
    KnownDaemon known = last(mount);
    return known != null
        && known.daemon().mayBeReplaced()
        && MountProbe.of(mountpoint) != MountProbe.STALE;
  }

  /** Whether a mount's daemon is known to have died, and no other follows. */
  public boolean hasDied(Path mountpoint) throws MountFailure {
    MountTable.Mount mount = surroundings.mounts().at(mountpoint);
    return mount != null && hasDied(mount, last(mount, mountpoint));
  }

  private static boolean hasDied(MountTable.Mount mount, @Nullable DaemonRecord last) {
    return last != null && last.isOf(mount) && !last.mayBeReplaced();
  }

  private @Nullable DaemonRecord last(MountTable.@Nullable Mount mount, Path mountpoint)
      throws MountFailure {
    return ask(of(mount), registry -> Optional.ofNullable(registry.last(mountpoint))).stream()
        .flatMap(answer -> answer.value().stream())
        .findFirst()
        .orElse(null);
  }

  /** Removes the files of a dead daemon whose mount is gone. */
  public void forget(Path mountpoint) throws MountFailure {
    for (Registry registry : all) {
      registry.forget(mountpoint);
    }
    sweepHolders();
  }

  /** Removes this user's holder records of mounts that are gone. */
  public void sweepHolders() throws MountFailure {
    for (Registry registry : all) {
      if (registry.stranger() < 0) {
        registry.sweepHolders(surroundings);
      }
    }
  }

  /** All running daemons of attached mounts, sorted by mount point. */
  public List<DaemonRecord> running() throws MountFailure {
    return living(false);
  }

  /** All daemons of detached mounts with open files, sorted by mount point. */
  public List<DaemonRecord> detached() throws MountFailure {
    return living(true);
  }

  private List<DaemonRecord> living(boolean isDetached) throws MountFailure {
    List<DaemonRecord> living = new ArrayList<>();
    List<Answer<List<DaemonRecord>>> answers = ask(all, registry -> registry.living(this::report));
    MountTable mounts = surroundings.mounts();
    for (Answer<List<DaemonRecord>> answer : answers) {
      for (DaemonRecord entry : answer.value()) {
        if (entry.detached() == isDetached) {
          living.add(vetted(entry, answer.registry(), mounts));
        }
      }
    }
    living.sort(Comparator.comparing(DaemonRecord::mountpoint));
    return living;
  }

  /** The daemon's user, if root sees another user's daemon; else -1. */
  public long owner(DaemonRecord entry) {
    return of(entry).mapToLong(Registry::stranger).findFirst().orElse(-1);
  }

  private Stream<Registry> of(DaemonRecord entry) {
    Path directory = Path.of(entry.socket()).getParent();
    return all.stream().filter(registry -> registry.directory().equals(directory));
  }

  /** Whether a daemon has ended and called {@link Registration#markSaved}. */
  public boolean isSaved(DaemonRecord ended) throws MountFailure {
    return ask(of(ended).toList(), registry -> registry.isSaved(ended)).stream()
        .anyMatch(Answer::value);
  }

  /** All daemons, including dead ones of this user. */
  public List<KnownDaemon> known() throws MountFailure {
    return ask(all, registry -> registry.known(this::report)).stream()
        .flatMap(answer -> answer.value().stream())
        .toList();
  }

  /** All running daemons, once for each mount point. */
  public List<DaemonRecord> mounted() throws MountFailure {
    List<DaemonRecord> mounted = new ArrayList<>(running());
    List<DaemonRecord> sessions = new ArrayList<>(mounted);
    sessions.addAll(detached());
    MountTable mounts = surroundings.mounts();
    for (DaemonRecord session : sessions) {
      for (Path place : mounts.places(session::shows)) {
        if (session.detached() || !place.toString().equals(session.mountpoint())) {
          mounted.add(session.withMountpoint(place));
        }
      }
    }
    return mounted;
  }

  /** Who mounted a session at a mount point; null if not recorded. */
  public @Nullable MountOwner holder(MountTable.Mount mount) throws MountFailure {
    return ask(
            of(mount),
            registry -> Optional.ofNullable(registry.holder(mount.mountpoint(), mount.device())))
        .stream()
        .flatMap(answer -> answer.value().stream())
        .findFirst()
        .orElse(null);
  }

  /** The mounts that replace sessions whose daemons died. */
  public List<StandIn> standIns() throws MountFailure {
    List<StandIn> standIns = new ArrayList<>();
    for (Registry registry : all) {
      standIns.addAll(registry.standIns(surroundings.mounts()));
    }
    return standIns;
  }

  /** The stand-in that contains a path; null if there is none. */
  public @Nullable StandIn standIn(Path path) throws MountFailure {
    MountTable.Mount mount = surroundings.mounts().holding(path);
    return mount == null
        ? null
        : standIns().stream().filter(one -> one.is(mount)).findFirst().orElse(null);
  }

  /**
   * A failure that reports that the source itself is mounted at or above the path, or that a mount
   * there was detached; null otherwise.
   */
  public @Nullable MountFailure detachment(Path path) throws MountFailure {
    StandIn standIn = standIn(path);
    if (standIn != null) {
      return new MountFailure(
          ExitStatus.NOT_MOUNTED, standIn.mountpoint() + ": not served: " + standIn.text());
    }
    for (DaemonRecord entry : detached()) {
      if (path.startsWith(entry.mountpoint())) {
        return new MountFailure(
            ExitStatus.NOT_MOUNTED,
            "%s: no longer mounted: it was detached, and pid %d serves the files that are still open; see pmfs status"
                .formatted(entry.mountpoint(), entry.pid()));
      }
    }
    return null;
  }

  /** The failure for a mount point without a daemon or a pmfs mount. */
  public MountFailure notMounted(Path mountpoint) throws MountFailure {
    MountFailure detached = detachment(mountpoint);
    return detached != null
        ? detached
        : new MountFailure(
            ExitStatus.NOT_MOUNTED, mountpoint + ": not mounted by pmfs; see pmfs status");
  }

  /**
   * Like {@link #running}, after waiting for the successors of dead daemons.
   *
   * @param missed receives the reason why a mount whose daemon is being replaced is missing
   */
  public List<DaemonRecord> awaitAll(Consumer<MountFailure> missed) throws MountFailure {
    List<DaemonRecord> serving = running();
    Set<String> known = serving.stream().map(DaemonRecord::mountpoint).collect(toSet());
    List<DaemonRecord> sessions = new ArrayList<>(serving);
    sessions.addAll(detached());
    Map<Long, Integer> counts = new HashMap<>();
    List<MountTable.Mount> ofStrangers = new ArrayList<>();
    for (MountTable.Mount mount : surroundings.mounts().all()) {
      boolean isKnown = !mount.isPmfs() || sessions.stream().anyMatch(one -> one.shows(mount));
      if (isKnown || !known.add(mount.mountpoint().toString())) {
        continue;
      }
      if (of(mount).stream().anyMatch(registry -> registry.stranger() >= 0)) {
        if (counts.merge(mount.userId(), 1, Integer::sum) <= MOST_WITHOUT_DAEMON) {
          ofStrangers.add(mount);
        } else {
          report(
              "user %d: too many mounts without a daemon, not all are shown"
                  .formatted(mount.userId()));
        }
        continue;
      }
      DaemonRecord entry = await(mount.mountpoint(), patience);
      if (entry != null) {
        serving.add(entry);
        sessions.add(entry);
      } else if (isBeingReplaced(mount.mountpoint())) {
        missed.accept(absence(mount.mountpoint()));
      }
    }
    for (DaemonRecord entry : awaitStrangers(ofStrangers, missed)) {
      if (serving.stream().noneMatch(one -> one.socket().equals(entry.socket()))) {
        serving.add(entry);
      }
    }
    serving.sort(Comparator.comparing(DaemonRecord::mountpoint));
    return serving;
  }

  /** The daemons of other users' mounts; waits for all of them at once. */
  private List<DaemonRecord> awaitStrangers(
      List<MountTable.Mount> mounts, Consumer<MountFailure> missed) throws MountFailure {
    List<FutureTask<Optional<DaemonRecord>>> waits = new ArrayList<>();
    for (MountTable.Mount mount : mounts) {
      FutureTask<Optional<DaemonRecord>> wait =
          new FutureTask<>(
              () -> {
                Path mountpoint = mount.mountpoint();
                DaemonRecord entry = await(mountpoint, STRANGERS_PATIENCE);
                if (entry == null && isBeingReplaced(mountpoint)) {
                  throw absence(mountpoint);
                }
                return Optional.ofNullable(entry);
              });
      waits.add(wait);
      DaemonThread.start("strangers", wait);
    }
    long deadline = System.nanoTime() + STRANGERS_PATIENCE.multipliedBy(3).toNanos();
    List<DaemonRecord> found = new ArrayList<>();
    for (int i = 0; i < waits.size(); i++) {
      try {
        long left = Math.max(0, deadline - System.nanoTime());
        waits.get(i).get(left, TimeUnit.NANOSECONDS).ifPresent(found::add);
      } catch (ExecutionException e) {
        Path mountpoint = mounts.get(i).mountpoint();
        missed.accept(
            e.getCause() instanceof MountFailure failure
                ? failure
                : new MountFailure(ExitStatus.FAILED, mountpoint + ": " + e.getCause(), e));
      } catch (TimeoutException e) {
        waits.get(i).cancel(true);
        missed.accept(
            new MountFailure(
                ExitStatus.FAILED, mounts.get(i).mountpoint() + ": does not answer", e));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new MountFailure(ExitStatus.FAILED, "interrupted", e);
      }
    }
    return found;
  }

  /** All registries, the user's own first. */
  public List<Registry> all() {
    return all;
  }

  /** The failure for a pmfs mount without a daemon in these registries. */
  public MountFailure absence(Path mountpoint) throws MountFailure {
    if (MountProbe.of(mountpoint) == MountProbe.STALE) {
      return new MountFailure(
          ExitStatus.NOT_MOUNTED,
          mountpoint + ": a stale mount: its daemon died; run pmfs umount " + mountpoint);
    }
    MountTable.Mount mount = surroundings.mounts().at(mountpoint);
    DaemonRecord last = last(mount, mountpoint);
    if (mount != null && last != null && hasDied(mount, last)) {
      return new MountFailure(
          ExitStatus.FAILED,
          "%s: its daemon died, and a user's mount has no other; run pmfs umount %s; see %s"
              .formatted(mountpoint, mountpoint, last.logFile()));
    }
    if (!isBeingReplaced(mountpoint)) {
      return new MountFailure(
          ExitStatus.NOT_MOUNTED,
          mountpoint
              + ": mounted by another user, or with another PMFS_RUNTIME_DIR; run this command in"
              + " the same way");
    }
    return new MountFailure(
        ExitStatus.FAILED,
        mountpoint
            + ": its daemon died, and the next one answers no commands yet"
            + (last == null ? "" : "; see " + last.logFile()));
  }
}
