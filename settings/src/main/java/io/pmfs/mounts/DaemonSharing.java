package io.pmfs.mounts;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierSpec;
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
 * The running daemons that a new mount of a dataset may share, and the choice of one. The daemon
 * that has the dataset's copies or state comes first; a mount that names no place for copies shares
 * any daemon that shows the dataset as it would.
 */
public final class DaemonSharing {
  /** A successor of a daemon that died starts within seconds. */
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  /** Those that do not say how the daemon serves. */
  private static final Set<MountOption<?>> OF_ONE_MOUNT =
      Set.of(MountOption.SOURCE, MountOption.USER, MountOption.READY_TIMEOUT);

  /** What becomes of an attempt to join a daemon. */
  public enum Outcome {
    JOINED,
    /** The session was unmounted meanwhile. */
    GONE,
    SILENT,
    /** This daemon shares with nobody. */
    IMPOSSIBLE
  }

  /** How daemons are asked. */
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
   * Looks for nothing yet.
   *
   * @param session what the mount would be if it had a daemon of its own
   * @param canBind whether a mount of another mount namespace can be shown in this one
   * @param notice gets a line for the user
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

  /** A daemon of the dataset that answers. */
  private record Candidate(SessionSettings served, MountSettings settings, DaemonRecord entry) {}

  /**
   * What the daemons of the dataset are to the new mount.
   *
   * @param shareable those that it may share, the best first
   * @param differing one that has its copies or state, but shows something else
   * @param silent one that does not answer now
   */
  private record Survey(
      List<Candidate> shareable, @Nullable Candidate differing, @Nullable DaemonRecord silent) {}

  /**
   * Joins a daemon. Waits for one that does not answer, or whose mount just ended: it may be
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
            sayWhatIsIgnored(candidate);
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
      if (!view(settings).equals(view(candidate.settings))) {
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
   * The sessions of this source that are mounted. A session whose daemon died counts, as it gets
   * another daemon. A session that another job or step ends does not count, nor does a session in
   * another mount namespace: nobody here would see its mounts.
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

  /** Whether its daemon is in the mount namespace of this process, as far as that is known. */
  private boolean hasSameMounts(DaemonRecord entry) {
    Path processes = surroundings.root().resolve("proc");
    try {
      return Files.readSymbolicLink(processes.resolve(entry.pid() + "/ns/mnt"))
          .equals(Files.readSymbolicLink(processes.resolve("self/ns/mnt")));
    } catch (IOException e) {
      return true;
    }
  }

  /** Without a supervisor the session died with its daemon. */
  private static boolean isSupervised(Path place) {
    return MountProbe.of(place) != MountProbe.STALE;
  }

  private boolean hasCopiesInCommon(MountSettings served) {
    List<Path> tiers = served.copies().tiers().stream().map(TierSpec::path).toList();
    return settings.copies().tiers().stream().map(TierSpec::path).anyMatch(tiers::contains)
        || Objects.equals(settings.metadata().stateDirectory(), served.metadata().stateDirectory());
  }

  /** Whether this mount says where its copies are to be. */
  private boolean namesAPlace() {
    return Stream.of(MountOption.TIER, MountOption.STATE_DIR, MountOption.CACHE)
        .anyMatch(session::isGiven);
  }

  /** What is seen, and who may see it, by the options that say so. */
  private static Map<String, Object> view(MountSettings mount) {
    Map<String, Object> view = new LinkedHashMap<>();
    view.put("--writable", mount.outputs() != null);
    view.put("--source-form", mount.source().form());
    view.put("--nested", mount.source().nested());
    view.put("--allow-other", mount.bridge().allowOther());
    return view;
  }

  private void sayWhatIsIgnored(Candidate joined) {
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

  /** The first difference between what is seen here and there. */
  private MountFailure difference(Candidate other) {
    Map<String, Object> wanted = view(settings);
    Map<String, Object> served = view(other.settings);
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
