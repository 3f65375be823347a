package io.pmfs.cli.mount;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.QueryStringEncoder;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.MountClient;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.dataset.TransientCopies;
import io.pmfs.daemon.process.BindMount;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.Reason;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.DaemonSharing;
import io.pmfs.mounts.MountOwner;
import io.pmfs.mounts.Registry;
import io.pmfs.places.Surroundings;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Adds a mount point to the running daemon of a dataset. Root bind-mounts the existing session; for
 * other users the daemon mounts another session. The daemon ends with the last of its mounts.
 */
final class SharedMount implements DaemonSharing.Daemons {
  private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);
  private static final int HTTP_OK = 200;
  private static final int HTTP_NOT_FOUND = 404;
  private static final int HTTP_NOT_IMPLEMENTED = 501;
  private static final int HTTP_UNAVAILABLE = 503;

  private final SessionSettings session;
  private final MountSettings settings;
  private final Registry registry;
  private final Invocation invocation;

  /**
   * @param session the settings that the mount would have with a separate daemon
   */
  SharedMount(
      SessionSettings session, MountSettings settings, Registry registry, Invocation invocation) {
    this.session = session;
    this.settings = settings;
    this.registry = registry;
    this.invocation = invocation;
  }

  /**
   * Joins a running daemon; returns false if none can be shared. See {@link DaemonSharing#join}.
   */
  boolean join() throws MountFailure {
    return settings.outputs() == null
        && !settings.isMountedByAnother()
        && new DaemonSharing(
                session, settings, registry, invocation.surroundings(), canBind(), invocation::warn)
            .join(this);
  }

  /** Whether this process is root, or root's supervisor can make a bind mount for it. */
  private boolean canBind() {
    Supervision supervision = invocation.supervision();
    return invocation.surroundings().isRoot()
        || (supervision != null && supervision.mountsForUser());
  }

  @Override
  public @Nullable SessionSettings settingsOf(DaemonRecord entry) {
    try {
      ControlClient.Answer answer =
          ControlClient.ask(
              Path.of(entry.socket()), HttpMethod.GET, "/configuration", ANSWER_LIMIT);
      return answer.status() == HTTP_OK ? SessionSettings.reported(answer.body()) : null;
    } catch (IOException e) {
      return null;
    }
  }

  @Override
  public DaemonSharing.Outcome join(DaemonRecord entry) throws MountFailure {
    DaemonSharing.Outcome outcome = canBind() ? bind(entry) : ask(entry);
    if (outcome == DaemonSharing.Outcome.JOINED) {
      agreeOnCopies(entry);
    }
    return outcome;
  }

  /** The daemon drops the copies at its end only if all of its mounts want that. */
  private void agreeOnCopies(DaemonRecord entry) throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    Path mountpoint = settings.mountpoint();
    try {
      Path state = new MountClient(entry, surroundings).state(ANSWER_LIMIT);
      if (state != null && !TransientCopies.join(state, surroundings)) {
        invocation.warn(
            mountpoint + ": --purge: the copies stay, because another mount shares them");
      }
    } catch (IOException e) {
      invocation.warn(mountpoint + ": its daemon may drop the copies: " + Reason.of(e));
    }
  }

  /** Asks the daemon to mount another session, for a user who cannot make bind mounts. */
  private DaemonSharing.Outcome ask(DaemonRecord entry) throws MountFailure {
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
      return DaemonSharing.Outcome.SILENT;
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
        yield DaemonSharing.Outcome.JOINED;
      }
      case HTTP_NOT_FOUND, HTTP_NOT_IMPLEMENTED -> DaemonSharing.Outcome.IMPOSSIBLE;
      case HTTP_UNAVAILABLE ->
          throw new MountFailure(
              ExitStatus.IN_USE,
              "%s: its daemon (pid %d) holds its copies and state: %s; use one of them, or choose another --tier and --state-dir"
                  .formatted(entry.source(), entry.pid(), answer.error()));
      default ->
          throw new MountFailure(
              ExitStatus.FAILED, MountFailure.naming(mountpoint, answer.error()));
    };
  }

  private DaemonSharing.Outcome bind(DaemonRecord entry) throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    String device = entry.device();
    if (device == null) {
      return DaemonSharing.Outcome.GONE;
    }
    DaemonRecord session = entry.withSessions(List.of(device));
    List<Path> places = surroundings.mounts().places(session::shows);
    if (places.isEmpty()) {
      return DaemonSharing.Outcome.GONE;
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
      return DaemonSharing.Outcome.GONE;
    }
    announce(entry, places.get(0), device);
    return DaemonSharing.Outcome.JOINED;
  }

  private void announce(DaemonRecord entry, Path shared, String device) throws MountFailure {
    Path mountpoint = settings.mountpoint();
    registry.hold(
        MountOwner.calling(
            mountpoint, device, invocation.clock().instant(), invocation.surroundings()));
    invocation.say(
        "%s mounted on %s (shares the daemon of %s; pid %d, log %s)"
            .formatted(entry.source(), mountpoint, shared, entry.pid(), entry.logFile()));
  }

  /**
   * Binds a mount of the session to the mount point; returns the reason for a failure, or an empty
   * string.
   */
  private String mount(Path place, String device) {
    Supervision supervision = invocation.supervision();
    Surroundings surroundings = invocation.surroundings();
    return surroundings.isRoot() || supervision == null
        ? BindMount.make(place, device, settings.mountpoint(), surroundings.forbidsExecution())
        : supervision.join(place, device);
  }
}
