package io.pmfs.cli;

import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.daemon.ExternalMount;
import io.pmfs.daemon.ExternalUnmount;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.Supervision;
import io.pmfs.settings.ExitStatus;
import io.pmfs.settings.Holder;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.MountProbe;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.MountTable;
import io.pmfs.settings.Registry;
import io.pmfs.settings.SchedulerJob;
import io.pmfs.settings.SessionSettings;
import io.pmfs.settings.Surroundings;
import io.pmfs.settings.TierSpec;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A mount that joins the running daemon of its dataset: a bind mount of the session that the kernel
 * already has. The session ends with its last mount, whichever that is.
 */
final class SharedMount {
  private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

  /** A successor of a daemon that died starts within seconds. */
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  /** A longer wait is worth a line. */
  private static final Duration UNTOLD = Duration.ofSeconds(2);

  private static final long POLL_MS = 100;
  private static final int HTTP_OK = 200;

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
   * Joins the daemon that has the dataset's copies or state.
   *
   * @return false if no daemon has them
   * @throws MountFailure if the daemon's mount shows something else than this one would
   */
  boolean join() throws MountFailure {
    if (!canBind() || settings.outputs() != null) {
      return false;
    }
    long begin = System.nanoTime();
    boolean isTold = false;
    while (true) {
      Registry.Entry silent = null;
      boolean isGone = false;
      for (Registry.Known known : sessions()) {
        Registry.Entry entry = known.entry();
        SessionSettings served = known.running() ? ask(entry) : null;
        if (served == null) {
          silent = entry;
        } else if (agrees(served, entry)) {
          if (bind(entry)) {
            sayWhatIsIgnored(served, entry);
            return true;
          }
          isGone = true;
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
        throw new MountFailure(
            ExitStatus.FAILED,
            "%s: its daemon (pid %d) does not answer; see %s"
                .formatted(silent.source(), silent.pid(), silent.logFile()));
      }
      pause();
    }
  }

  /** Only root can, or root's supervisor for a user. */
  private boolean canBind() {
    Supervision supervision = invocation.supervision();
    return invocation.surroundings().isRoot()
        || (supervision != null && supervision.mountsForUser());
  }

  /**
   * The sessions of this source that are mounted. One that died counts, as it gets another daemon;
   * one that ends with another job does not.
   */
  private List<Registry.Known> sessions() throws MountFailure {
    MountTable mounts = invocation.surroundings().mounts();
    List<Registry.Known> sessions = new ArrayList<>();
    for (Registry.Known known : registry.known()) {
      List<Path> places = mounts.placesOf(known.entry().device());
      if (settings.source().path().toString().equals(known.entry().source())
          && !places.isEmpty()
          && !endsWithAnotherJob(known.entry())
          && (known.running() || isSupervised(places.get(0)))) {
        sessions.add(known);
      }
    }
    return sessions;
  }

  /** A scheduler kills what it finds of a job, also a daemon that the job has started. */
  private boolean endsWithAnotherJob(Registry.Entry entry) {
    Surroundings surroundings = invocation.surroundings();
    String job = SchedulerJob.of(entry.pid(), surroundings);
    return job != null && !job.equals(SchedulerJob.own(surroundings));
  }

  /** Without a supervisor the session died with its daemon. */
  private static boolean isSupervised(Path place) {
    return MountProbe.of(place) != MountProbe.STALE;
  }

  /** The settings of the daemon; null if it does not answer now. */
  private static @Nullable SessionSettings ask(Registry.Entry entry) {
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

  /**
   * Whether it has copies or state in common. Then what is seen, and who may see it, must be the
   * same.
   */
  private boolean agrees(SessionSettings session, Registry.Entry entry) throws MountFailure {
    MountSettings served = session.toSettings(invocation.surroundings());
    if (!hasCopiesInCommon(served)) {
      return false;
    }
    requireEqual("--writable", false, served.outputs() != null, entry);
    requireEqual("--source-form", settings.source().form(), served.source().form(), entry);
    requireEqual("--nested", settings.source().nested(), served.source().nested(), entry);
    requireEqual(
        "--allow-other", settings.bridge().allowOther(), served.bridge().allowOther(), entry);
    return true;
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

  private void requireEqual(String option, Object wanted, Object served, Registry.Entry entry)
      throws MountFailure {
    if (!wanted.equals(served)) {
      throw MountFailure.usage(
          "%s: %s is %s here, and %s for the mount on %s (pid %d), whose copies it would share; give the same, or another --tier and --state-dir"
              .formatted(
                  settings.mountpoint(), option, wanted, served, entry.mountpoint(), entry.pid()));
    }
  }

  /** False if the session was unmounted meanwhile. */
  private boolean bind(Registry.Entry entry) throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    List<Path> places = surroundings.mounts().placesOf(entry.device());
    if (places.isEmpty()) {
      return false;
    }
    Path mountpoint = settings.mountpoint();
    String problem = mount(places.get(0), entry);
    MountTable.Mount made = surroundings.mounts().at(mountpoint);
    boolean isOurs = made != null && made.device().equals(entry.device());
    if (!isOurs) {
      // The place was unmounted just before, so this shows the directory below it.
      if (problem.isEmpty() && made != null) {
        ExternalUnmount.run(made, true, surroundings);
      } else if (!surroundings.mounts().placesOf(entry.device()).isEmpty()) {
        throw new MountFailure(ExitStatus.FAILED, mountpoint + ": not mounted: " + problem);
      }
      return false;
    }
    registry.hold(
        Holder.calling(
            mountpoint,
            String.valueOf(entry.device()),
            invocation.clock().instant(),
            surroundings));
    invocation.say(
        "%s mounted on %s (shares the daemon of %s; pid %d, log %s)"
            .formatted(entry.source(), mountpoint, places.get(0), entry.pid(), entry.logFile()));
    return true;
  }

  /** Binds a place of the session to the mount point; returns why that failed, or nothing. */
  private String mount(Path place, Registry.Entry entry) throws MountFailure {
    Supervision supervision = invocation.supervision();
    return invocation.surroundings().isRoot() || supervision == null
        ? ExternalMount.bind(place, settings.mountpoint())
        : supervision.join(String.valueOf(entry.device()));
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
