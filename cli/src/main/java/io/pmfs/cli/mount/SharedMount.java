package io.pmfs.cli.mount;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.QueryStringEncoder;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.process.BindMount;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.mounts.Holder;
import io.pmfs.mounts.MountProbe;
import io.pmfs.mounts.Registry;
import io.pmfs.mounts.SchedulerJob;
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
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A mount that joins the running daemon of its dataset. Root's is a bind mount of the session that
 * the kernel already has; for other users the daemon mounts another session. The daemon ends with
 * the last mount, whichever that is.
 */
final class SharedMount {
  private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

  /** A successor of a daemon that died starts within seconds. */
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  /** A longer wait is worth a line. */
  private static final Duration UNTOLD = Duration.ofSeconds(2);

  private static final long POLL_MS = 100;
  private static final int HTTP_OK = 200;
  private static final int HTTP_NOT_FOUND = 404;
  private static final int HTTP_NOT_IMPLEMENTED = 501;
  private static final int HTTP_UNAVAILABLE = 503;

  /** Those that do not say how the daemon serves. */
  private static final Set<MountOption<?>> OF_ONE_MOUNT =
      Set.of(MountOption.SOURCE, MountOption.USER, MountOption.READY_TIMEOUT);

  private final SessionSettings session;
  private final MountSettings settings;
  private final Registry registry;
  private final Invocation invocation;

  /**
   * Looks for nothing yet.
   *
   * @param session what the mount would be if it had a daemon of its own
   */
  SharedMount(
      SessionSettings session, MountSettings settings, Registry registry, Invocation invocation) {
    this.session = session;
    this.settings = settings;
    this.registry = registry;
    this.invocation = invocation;
  }

  /**
   * Joins the daemon that has the dataset's copies or state; if this mount names no place for
   * copies, any daemon that shows the dataset as it would.
   *
   * @return false if no daemon can be shared
   * @throws MountFailure if only a daemon that shows something else has the copies or state
   */
  boolean join() throws MountFailure {
    if (settings.outputs() != null) {
      return false;
    }
    long begin = System.nanoTime();
    boolean isTold = false;
    while (true) {
      Registry.Entry silent = null;
      boolean isGone = false;
      List<Candidate> candidates = new ArrayList<>();
      Candidate differing = null;
      for (Registry.Known known : sessions()) {
        Registry.Entry entry = known.entry();
        SessionSettings served = known.running() ? settingsOf(entry) : null;
        if (served == null) {
          silent = entry;
          continue;
        }
        Candidate candidate =
            new Candidate(served, served.toSettings(invocation.surroundings()), entry);
        boolean isCommon = hasCopiesInCommon(candidate.settings);
        if (view(settings).equals(view(candidate.settings))) {
          if (isCommon) {
            candidates.add(0, candidate);
          } else if (!namesAPlace()) {
            candidates.add(candidate);
          }
        } else if (isCommon) {
          differing = candidate;
        }
      }
      if (candidates.isEmpty() && differing != null) {
        throw difference(differing);
      }
      for (Candidate candidate : candidates) {
        switch (canBind() ? bind(candidate.entry) : ask(candidate.entry)) {
          case JOINED -> {
            sayWhatIsIgnored(candidate.served, candidate.entry);
            return true;
          }
          case GONE -> isGone = true;
          case SILENT -> silent = candidate.entry;
          case IMPOSSIBLE -> {}
        }
      }
      if (silent == null && !isGone) {
        return false;
      }
      long waited = System.nanoTime() - begin;
      if (silent != null && !isTold && waited > UNTOLD.toNanos()) {
        isTold = true;
        invocation.warn(
            "%s: waiting for its daemon (pid %d), which does not answer, %d s at most"
                .formatted(silent.source(), silent.pid(), PATIENCE.toSeconds()));
      }
      if (silent != null && waited > PATIENCE.toNanos()) {
        throw silence(silent);
      }
      pause();
    }
  }

  /** A daemon that may be shared. */
  private record Candidate(SessionSettings served, MountSettings settings, Registry.Entry entry) {}

  private enum Outcome {
    JOINED,
    /** The session was unmounted meanwhile. */
    GONE,
    SILENT,
    /** This daemon shares with nobody. */
    IMPOSSIBLE
  }

  private static MountFailure silence(Registry.Entry entry) {
    return new MountFailure(
        ExitStatus.FAILED,
        "%s: its daemon (pid %d) does not answer; see %s"
            .formatted(entry.source(), entry.pid(), entry.logFile()));
  }

  /** Only root can, or root's supervisor for a user. */
  private boolean canBind() {
    Supervision supervision = invocation.supervision();
    return invocation.surroundings().isRoot()
        || (supervision != null && supervision.mountsForUser());
  }

  /**
   * The sessions of this source that are mounted. A session whose daemon died counts, as it gets
   * another daemon. A session that another job or step ends does not count, nor does a session in
   * another mount namespace: nobody here would see its mounts.
   */
  private List<Registry.Known> sessions() throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    MountTable mounts = surroundings.mounts();
    List<Registry.Known> sessions = new ArrayList<>();
    for (Registry.Known known : registry.known()) {
      List<Path> places = mounts.places(known.entry()::shows);
      if (settings.source().path().toString().equals(known.entry().source())
          && !places.isEmpty()
          && !SchedulerJob.endsBefore(known.entry().pid(), surroundings)
          && (canBind() || hasSameMounts(known.entry()))
          && (known.running() || isSupervised(places.get(0)))) {
        sessions.add(known);
      }
    }
    return sessions;
  }

  /** Whether its daemon is in the mount namespace of this process, as far as that is known. */
  private boolean hasSameMounts(Registry.Entry entry) {
    Path processes = invocation.surroundings().root().resolve("proc");
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

  /** The settings of the daemon; null if it does not answer now. */
  private static @Nullable SessionSettings settingsOf(Registry.Entry entry) {
    try {
      ControlClient.Answer answer =
          ControlClient.ask(
              Path.of(entry.socket()), HttpMethod.GET, "/configuration", ANSWER_LIMIT);
      return answer.status() == HTTP_OK ? SessionSettings.reported(answer.body()) : null;
    } catch (IOException e) {
      return null;
    }
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

  private void sayWhatIsIgnored(SessionSettings served, Registry.Entry entry) {
    List<String> ignored =
        session.givenOtherwise(served, invocation.surroundings()).stream()
            .filter(option -> !OF_ONE_MOUNT.contains(option))
            .map(MountOption::commandLineName)
            .toList();
    if (!ignored.isEmpty()) {
      invocation.warn(
          "%s: shares the daemon of %s, whose values count: ignored %s"
              .formatted(settings.mountpoint(), entry.mountpoint(), String.join(", ", ignored)));
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

  /** Has the daemon of a user without root mount another session. */
  private Outcome ask(Registry.Entry entry) throws MountFailure {
    Path mountpoint = settings.mountpoint();
    List<Path> places = invocation.surroundings().mounts().places(entry::shows);
    Duration limit = settings.bridge().readyTimeout();
    QueryStringEncoder query = new QueryStringEncoder("/mount", UTF_8);
    query.addParam("mountpoint", mountpoint.toString());
    query.addParam("timeout", limit.toMillis() + "ms");
    ControlClient.Answer answer;
    try {
      answer =
          ControlClient.ask(
              Path.of(entry.socket()), HttpMethod.POST, query.toString(), limit.plus(ANSWER_LIMIT));
    } catch (IOException e) {
      return Outcome.SILENT;
    }
    return switch (answer.status()) {
      case HTTP_OK -> {
        MountTable.Mount made = invocation.surroundings().mounts().at(mountpoint);
        if (made == null || !made.isPmfs()) {
          throw new MountFailure(
              ExitStatus.FAILED,
              "%s: mounted by pid %d, but unmounted again, or in another mount namespace"
                  .formatted(mountpoint, entry.pid()));
        }
        announce(
            entry, places.isEmpty() ? Path.of(entry.mountpoint()) : places.get(0), made.device());
        yield Outcome.JOINED;
      }
      case HTTP_NOT_FOUND, HTTP_NOT_IMPLEMENTED -> Outcome.IMPOSSIBLE;
      case HTTP_UNAVAILABLE ->
          throw new MountFailure(
              ExitStatus.IN_USE,
              "%s: its daemon (pid %d) has its copies and state: %s; use one of them, or choose another --tier and --state-dir"
                  .formatted(entry.source(), entry.pid(), answer.error()));
      default ->
          throw new MountFailure(
              ExitStatus.FAILED, MountFailure.naming(mountpoint, answer.error()));
    };
  }

  private Outcome bind(Registry.Entry entry) throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    String device = entry.device();
    if (device == null) {
      return Outcome.GONE;
    }
    Registry.Entry session = entry.with(List.of(device));
    List<Path> places = surroundings.mounts().places(session::shows);
    if (places.isEmpty()) {
      return Outcome.GONE;
    }
    Path mountpoint = settings.mountpoint();
    String problem =
        mount(
            places.stream().filter(p -> !Registry.isKept(p)).findFirst().orElse(places.get(0)),
            device);
    MountTable.Mount made = surroundings.mounts().at(mountpoint);
    if (made == null || !made.device().equals(device)) {
      if (!surroundings.mounts().places(session::shows).isEmpty()) {
        throw new MountFailure(ExitStatus.FAILED, mountpoint + ": not mounted: " + problem);
      }
      return Outcome.GONE;
    }
    announce(entry, places.get(0), device);
    return Outcome.JOINED;
  }

  private void announce(Registry.Entry entry, Path shared, String device) throws MountFailure {
    Path mountpoint = settings.mountpoint();
    registry.hold(
        Holder.calling(
            mountpoint, device, invocation.clock().instant(), invocation.surroundings()));
    invocation.say(
        "%s mounted on %s (shares the daemon of %s; pid %d, log %s)"
            .formatted(entry.source(), mountpoint, shared, entry.pid(), entry.logFile()));
  }

  /** Binds a place of the session to the mount point; returns why that failed, or nothing. */
  private String mount(Path place, String device) {
    Supervision supervision = invocation.supervision();
    Surroundings surroundings = invocation.surroundings();
    return surroundings.isRoot() || supervision == null
        ? BindMount.make(place, device, settings.mountpoint(), surroundings.forbidsExecution())
        : supervision.join(place, device);
  }

  private void pause() throws MountFailure {
    try {
      Thread.sleep(POLL_MS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new MountFailure(ExitStatus.FAILED, settings.mountpoint() + ": interrupted", e);
    }
  }
}
