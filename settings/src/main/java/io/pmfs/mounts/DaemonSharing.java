package io.pmfs.mounts;

import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.Limited;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.places.SourceIdentity;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierSpec;
import io.pmfs.posix.FsException;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Chooses a running daemon for a new mount of a dataset to share: first the daemon that has the
 * configured copies or state; for a mount that names no place for copies, any daemon that shows the
 * dataset in the same way.
 */
public final class DaemonSharing {
  /** Longer than a successor of a dead daemon takes to start. */
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  /** Options that do not affect how a daemon serves. */
  private static final Set<MountOption<?>> OF_ONE_MOUNT =
      Set.of(MountOption.SOURCE, MountOption.USER, MountOption.READY_TIMEOUT);

  /** The result of an attempt to join a daemon. */
  public enum Outcome {
    JOINED,
    /** The session was unmounted meanwhile. */
    GONE,
    SILENT,
    /** This daemon cannot be shared. */
    IMPOSSIBLE
  }

  /** Sends requests to daemons. */
  public interface Daemons {
    /** The settings of a daemon; null if it does not answer now. */
    @Nullable SessionSettings settingsOf(DaemonRecord daemon);

    Outcome join(DaemonRecord daemon) throws MountFailure;
  }

  private final SessionSettings session;
  private final MountSettings settings;
  private final Registry registry;
  private final Surroundings surroundings;
  private final boolean canBind;
  private final Consumer<String> notice;

  /**
   * Reads nothing yet.
   *
   * @param session the settings of the mount if it had its own daemon
   * @param canBind whether a mount of another mount namespace can be bound in this one
   * @param notice receives lines for the user
   */
  public DaemonSharing(
      SessionSettings session,
      MountSettings settings,
      Registry registry,
      Surroundings surroundings,
      boolean canBind,
      Consumer<String> notice) {
    this.session = session;
    this.settings = settings;
    this.registry = registry;
    this.surroundings = surroundings;
    this.canBind = canBind;
    this.notice = notice;
  }

  private record Candidate(SessionSettings served, MountSettings settings, DaemonRecord entry) {}

  /** Longer than a source that works takes to open its root. */
  private static final Duration SOURCE_LIMIT = Duration.ofSeconds(10);

  /**
   * The dataset's daemons, from the view of the new mount.
   *
   * @param shareable daemons that it may share, best first
   * @param differing one that has its copies or state, but shows something else
   * @param silent one that does not answer now
   */
  private record Survey(
      List<Candidate> shareable, @Nullable Candidate differing, @Nullable DaemonRecord silent) {}

  /**
   * Joins a daemon. Waits if one does not answer or its mount has just ended, because it may be
   * replaced.
   *
   * @return false if no daemon can be shared
   * @throws MountFailure if only a daemon that shows something else has the copies or state
   */
  public boolean join(Daemons daemons) throws MountFailure {
    Wait wait = new Wait(PATIENCE, notice);
    while (true) {
      Survey survey = survey(daemons);
      if (survey.shareable.isEmpty() && survey.differing != null) {
        throw difference(survey.differing);
      }
      DaemonRecord awaited = survey.silent;
      for (Candidate candidate : survey.shareable) {
        switch (daemons.join(candidate.entry)) {
          case JOINED -> {
            reportIgnored(candidate);
            return true;
          }
          case GONE, SILENT -> awaited = candidate.entry;
          case IMPOSSIBLE -> {}
        }
      }
      if (awaited == null) {
        return false;
      }
      String line =
          "%s: waiting for its daemon (pid %d), which does not answer, %d s at most"
              .formatted(awaited.source(), awaited.pid(), PATIENCE.toSeconds());
      if (!wait.pause(line)) {
        throw new MountFailure(
            ExitStatus.FAILED,
            "%s: its daemon (pid %d) does not answer; see %s"
                .formatted(awaited.source(), awaited.pid(), awaited.logFile()));
      }
    }
  }

  private Survey survey(Daemons daemons) throws MountFailure {
    List<Candidate> shareable = new ArrayList<>();
    Candidate differing = null;
    DaemonRecord silent = null;
    for (KnownDaemon known : sessions()) {
      SessionSettings served = known.running() ? daemons.settingsOf(known.daemon()) : null;
      if (served == null) {
        silent = known.daemon();
        continue;
      }
      Candidate candidate = new Candidate(served, served.toSettings(surroundings), known.daemon());
      boolean isCommon = hasCopiesInCommon(candidate.settings);
      if (!view(settings).equals(view(candidate.settings)) || hasOtherSource(candidate)) {
        differing = isCommon ? candidate : differing;
      } else if (isCommon) {
        shareable.add(0, candidate);
      } else if (!namesAPlace()) {
        shareable.add(candidate);
      }
    }
    return new Survey(shareable, differing, silent);
  }

  /**
   * The mounted sessions of this source, including those whose daemon died and will be replaced.
   * Excludes sessions that another job or step will end, and those in another mount namespace,
   * whose mounts are invisible here.
   */
  private List<KnownDaemon> sessions() throws MountFailure {
    MountTable mounts = surroundings.mounts();
    List<KnownDaemon> sessions = new ArrayList<>();
    for (KnownDaemon known : registry.known()) {
      List<Path> places = mounts.places(known.daemon()::shows);
      if (settings.source().path().toString().equals(known.daemon().source())
          && !places.isEmpty()
          && !SchedulerJob.endsBefore(known.daemon().pid(), surroundings)
          && (canBind || hasSameMounts(known.daemon()))
          && (known.running() || isSupervised(places.get(0)))) {
        sessions.add(known);
      }
    }
    return sessions;
  }

  /** Whether the daemon is in the mount namespace of this process; true if unknown. */
  private boolean hasSameMounts(DaemonRecord entry) {
    Path processes = surroundings.root().resolve("proc");
    try {
      return Files.readSymbolicLink(processes.resolve(entry.pid() + "/ns/mnt"))
          .equals(Files.readSymbolicLink(processes.resolve("self/ns/mnt")));
    } catch (IOException e) {
      return true;
    }
  }

  /** Whether another directory is at the source's path now; false if unknown. */
  private boolean hasOtherSource(Candidate candidate) {
    SourceIdentity mounted = candidate.served.source();
    if (mounted == null) {
      return false;
    }
    Path source = settings.source().path();
    Path root = mounted.form() == SourceIdentity.Form.TAR ? source.resolveSibling("") : source;
    try {
      return !Limited.call(SOURCE_LIMIT, () -> identity(root)).equals(mounted.root());
    } catch (IOException e) {
      return false;
    }
  }

  private static String identity(Path directory) throws FsException {
    try (DirectoryStore opened = new DirectoryStore(directory)) {
      return opened.identity();
    }
  }

  /** Whether the session survives its daemon's death. */
  private static boolean isSupervised(Path place) {
    return MountProbe.of(place) != MountProbe.STALE;
  }

  private boolean hasCopiesInCommon(MountSettings served) {
    List<Path> tiers = served.copies().tiers().stream().map(TierSpec::path).toList();
    return settings.copies().tiers().stream().map(TierSpec::path).anyMatch(tiers::contains)
        || Objects.equals(settings.metadata().stateDirectory(), served.metadata().stateDirectory());
  }

  /** Whether this mount's options name a place for copies or state. */
  private boolean namesAPlace() {
    return Stream.of(MountOption.TIER, MountOption.STATE_DIR, MountOption.NODE_CACHE)
        .anyMatch(session::isGiven);
  }

  /** The options that determine what users see, with their values. */
  private static Map<String, Object> view(MountSettings mount) {
    Map<String, Object> view = new LinkedHashMap<>();
    view.put("--writable", mount.outputs() != null);
    view.put("--source-form", mount.source().form());
    view.put("--nested", mount.source().nested());
    view.put("--allow-other", mount.bridge().allowOther());
    return view;
  }

  private void reportIgnored(Candidate joined) {
    List<String> ignored =
        session.givenOtherwise(joined.served, surroundings).stream()
            .filter(option -> !OF_ONE_MOUNT.contains(option))
            .map(MountOption::commandLineName)
            .toList();
    if (!ignored.isEmpty()) {
      notice.accept(
          "%s: shares the daemon of %s; ignored here: %s"
              .formatted(
                  settings.mountpoint(), joined.entry.mountpoint(), String.join(", ", ignored)));
    }
  }

  /** The first difference between both views, or between the sources. */
  private MountFailure difference(Candidate other) throws MountFailure {
    Map<String, Object> wanted = view(settings);
    Map<String, Object> served = view(other.settings);
    if (wanted.equals(served)) {
      List<Path> places = surroundings.mounts().places(other.entry::shows);
      return new MountFailure(
          ExitStatus.IN_USE,
          "%s: another directory than at the time of the mount on %s (pid %d), whose copies it would share; unmount that, or give another --tier and --state-dir"
              .formatted(
                  settings.source().path(),
                  places.isEmpty() ? other.entry.mountpoint() : places.get(0),
                  other.entry.pid()));
    }
    String option =
        wanted.keySet().stream()
            .filter(name -> !Objects.equals(wanted.get(name), served.get(name)))
            .findFirst()
            .orElseThrow();
    return MountFailure.usage(
        "%s: %s is %s here, and %s for the mount on %s (pid %d), whose copies it would share; give the same, or another --tier and --state-dir"
            .formatted(
                settings.mountpoint(),
                option,
                wanted.get(option),
                served.get(option),
                other.entry.mountpoint(),
                other.entry.pid()));
  }
}
