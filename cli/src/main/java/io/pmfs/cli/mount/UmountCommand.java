package io.pmfs.cli.mount;

import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.MountClient;
import io.pmfs.cli.tasks.DrainCommand;
import io.pmfs.cli.tasks.DrainProgress;
import io.pmfs.cli.tasks.DrainWait;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.process.ExternalUnmount;
import io.pmfs.daemon.tasks.Drains;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.TimeSpan;
import io.pmfs.mounts.MountProbe;
import io.pmfs.mounts.MountViewers;
import io.pmfs.mounts.Registries;
import io.pmfs.mounts.Registry;
import io.pmfs.mounts.StandIn;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs umount}: unmounts and waits until the daemon is gone. */
@Command(
    name = "umount",
    description = "Unmounts and stops the daemon. Copies stay in the tiers for the next mount.%n",
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs umount /mnt/dataset",
      "  pmfs umount --purge /mnt/dataset     also drop its copies",
      "  pmfs umount --lazy /mnt/dataset      even if files are open",
      "  pmfs umount --grace 10s /mnt/dataset wait 10 s for open files to be closed, then detach",
      "  pmfs umount --no-drain /mnt/run42     a writable mount, before all is at the source"
    })
public final class UmountCommand implements Callable<Integer> {
  private static final long POLL_MS = 50;
  private static final int ATTEMPTS = 5;
  private static final long GRACE_POLL_MS = 200;
  private static final int HTTP_OK = 200;
  private static final int HTTP_BAD_REQUEST = 400;
  private static final int HTTP_CONFLICT = 409;
  private static final int HTTP_GONE = 410;
  private static final int HTTP_NOT_IMPLEMENTED = 501;
  private static final Duration LAZY_PATIENCE = Duration.ofSeconds(2);

  /** What keeps a daemon for longer than this is looked for. */
  private static final Duration USUAL_END = Duration.ofMillis(500);

  private final Invocation invocation;

  @Parameters(paramLabel = "MOUNTPOINT", description = "Where the dataset is mounted.")
  private String mountpointText;

  @Option(
      names = "--lazy",
      description =
          "Detach now, even if files are open; the daemon serves them until they are closed.")
  private boolean lazy;

  @Option(names = "--purge", description = "Also drop this dataset's copies and state.")
  private boolean purge;

  @Option(
      names = "--grace",
      paramLabel = "TIME",
      description =
          "Wait up to TIME until no process has files open; then list those that do, and detach as"
              + " --lazy does.")
  private @Nullable String graceText;

  @Option(
      names = "--no-drain",
      description =
          "Do not wait until the changes of a writable mount are at the source. What is not there"
              + " stays in its state, for the next mount or pmfs drain --state.")
  private boolean noDrain;

  @Option(
      names = "--timeout",
      paramLabel = "TIME",
      description =
          "How long to wait for the daemon, 60s if not given; of a writable mount, also how long to"
              + " wait until its changes are at the source, without limit if not given. If they"
              + " are not, it stays mounted.")
  private @Nullable String givenTimeout;

  private String timeoutText = "60s";

  /** Whether the daemon is told not to wait for the source; an old one does not know of that. */
  private boolean abandons;

  private long graceEnd;

  /** The mount to unmount, never a later one at the same place; null if there is none. */
  private MountTable.@Nullable Mount target;

  public UmountCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    timeoutText = givenTimeout == null ? timeoutText : givenTimeout;
    Duration timeout = MountFailure.parsing("--timeout", timeoutText, TimeSpan::parse);
    graceEnd = System.nanoTime();
    if (graceText != null) {
      graceEnd += MountFailure.parsing("--grace", graceText, TimeSpan::parse).toNanos();
    }
    Surroundings surroundings = invocation.surroundings();
    Path mountpoint = surroundings.resolveLinks(surroundings.resolve(mountpointText));
    MountTable.Mount found = surroundings.mounts().at(mountpoint);
    target = found != null && found.isPmfs() ? found : null;
    Registries registries = Registries.open(surroundings, invocation::warn);
    StandIn standIn = registries.standIn(mountpoint);
    if (found != null && standIn != null && standIn.is(found)) {
      target = found;
      unmountStandIn(mountpoint, registries);
      return ExitStatus.DONE;
    }
    // Purging needs the daemon, unmounting does not.
    Registry.Entry entry = purge ? registries.await(mountpoint) : registries.find(mountpoint);
    if (entry != null && target == null && isMountedElsewhere(entry)) {
      throw registries.notMounted(mountpoint);
    } else if (entry != null) {
      int left = drain(mountpoint, entry, givenTimeout == null ? null : timeout);
      if (left != ExitStatus.DONE && !noDrain) {
        return left;
      }
      List<Path> others = others(mountpoint, entry);
      // Purging ends the daemon, and with it the place that keeps it.
      if (others.isEmpty() || (purge && others.stream().allMatch(Registry::isKept))) {
        askDaemon(mountpoint, entry, timeout);
      } else {
        unmountShared(mountpoint, entry, others, timeout);
      }
      registries.sweepHolders();
      return left;
    } else if (target != null) {
      unmountWithoutDaemon(mountpoint, timeout);
      registries.forget(mountpoint);
    } else {
      throw registries.notMounted(mountpoint);
    }
    return ExitStatus.DONE;
  }

  /**
   * Waits until the changes of a writable mount are at the source. Returns the exit status if they
   * are not.
   */
  private int drain(Path mountpoint, Registry.Entry entry, @Nullable Duration timeout)
      throws MountFailure {
    MountTable.Mount mount = target;
    if (mount == null || mount.hasOption("ro")) {
      return ExitStatus.DONE;
    }
    DrainWait.Outcome outcome;
    try {
      outcome =
          new DrainWait(invocation, mountpoint).await(entry, noDrain ? Duration.ZERO : timeout);
    } catch (MountFailure e) {
      if (noDrain) {
        abandons = true;
        invocation.warn(e.line());
        return ExitStatus.PARTLY;
      }
      throw new MountFailure(
          e.exitStatus(), e.line() + "; umount --no-drain does not wait for that", e);
    }
    if (outcome == null) {
      return ExitStatus.DONE;
    }
    if (outcome.isDrained() || (noDrain && outcome.last().outputs().isDrained())) {
      sayWhatDiffers(mountpoint, outcome.last());
      return ExitStatus.DONE;
    }
    abandons = noDrain;
    DrainProgress.lines(outcome.last().outputs(), outcome.last().waiting())
        .forEach(invocation::show);
    String left = mountpoint + ": " + DrainCommand.summary(outcome.last().outputs());
    invocation.warn(
        noDrain
            ? left + "; it stays for the next mount, or pmfs drain --state (pmfs cache names it)"
            : left + "; still mounted: umount again, or with --no-drain");
    return outcome.interruptStatus() != 0 ? outcome.interruptStatus() : ExitStatus.PARTLY;
  }

  /** Conflicts, and what the source refused for good: unmounting loses none of it. */
  private void sayWhatDiffers(Path mountpoint, Drains.Report last) {
    if (!last.absent().isEmpty()) {
      invocation.warn(mountpoint + ": " + DrainCommand.unknown(last.absent()));
    }
    if (!last.outputs().isWhole()) {
      DrainProgress.lines(last.outputs(), last.waiting()).forEach(invocation::show);
      invocation.warn(mountpoint + ": " + DrainCommand.summary(last.outputs()));
    }
  }

  private boolean isMountedElsewhere(Registry.Entry entry) throws MountFailure {
    return !invocation.surroundings().mounts().places(entry::shows).isEmpty();
  }

  /** The other mount points of the target's daemon. */
  private List<Path> others(Path mountpoint, Registry.Entry entry) throws MountFailure {
    MountTable.Mount wanted = target;
    if (wanted == null) {
      return List.of();
    }
    MountTable mounts = invocation.surroundings().mounts();
    List<Path> places = entry.isOf(wanted) ? mounts.places(entry::shows) : mounts.placesOf(wanted);
    return places.stream()
        .filter(place -> !place.equals(mountpoint))
        .sorted(Comparator.comparing(Registry::isKept))
        .toList();
  }

  /** Unmounts one mount point of several; the kernel ends the session with the last one. */
  private void unmountShared(
      Path mountpoint, Registry.Entry entry, List<Path> others, Duration timeout)
      throws MountFailure {
    if (purge) {
      throw MountFailure.usage(
          "%s: nothing was purged or unmounted: %s shares its copies; unmount without --purge, or that one first"
              .formatted(mountpoint, others.get(0)));
    }
    Optional<ProcessHandle> process = ProcessHandle.of(entry.pid());
    unmountExternally(mountpoint, false);
    List<Path> left = others(mountpoint, entry);
    if (left.isEmpty()) {
      awaitEnd(mountpoint, entry, process, timeout);
    } else if (left.stream().allMatch(Registry::isKept)) {
      invocation.say(
          "%s unmounted; pid %d stays for the next mount of %s (--linger); pmfs umount %s ends it"
              .formatted(mountpoint, entry.pid(), entry.source(), left.get(0)));
    }
  }

  private boolean isMounted(Path mountpoint) throws MountFailure {
    MountTable.Mount wanted = target;
    return wanted != null && wanted.isSameAs(invocation.surroundings().mounts().at(mountpoint));
  }

  private void unmountTarget(boolean lazily) throws MountFailure {
    MountTable.Mount wanted = target;
    if (wanted != null) {
      ExternalUnmount.run(wanted, lazily, invocation.surroundings());
    }
  }

  private void askDaemon(Path mountpoint, Registry.Entry entry, Duration timeout)
      throws MountFailure {
    // Taken before asking, so that a reused process id is not mistaken for the daemon.
    Optional<ProcessHandle> process = ProcessHandle.of(entry.pid());
    try {
      ControlClient.Answer answer = ask(mountpoint, entry, timeout);
      while (answer.status() == HTTP_CONFLICT) {
        awaitHolders(mountpoint);
        answer = ask(mountpoint, entry, timeout);
      }
      if (answer.status() == HTTP_NOT_IMPLEMENTED) {
        unmountForDaemon(mountpoint);
      } else if (answer.status() != HTTP_OK
          && !(answer.status() == HTTP_GONE && !isMounted(mountpoint))) {
        throw new MountFailure(ExitStatus.FAILED, MountFailure.naming(mountpoint, answer.error()));
      } else if (!mountpoint.toString().equals(entry.mountpoint()) || entry.detached()) {
        unmountExternally(mountpoint, false); // the daemon unmounts only where it mounted
      }
    } catch (IOException e) {
      unmountSilentDaemon(mountpoint, entry, process, e);
    }
    awaitEnd(mountpoint, entry, process, timeout);
  }

  /**
   * A daemon that was found by a device number says whether that is its own: its record may be
   * older than the mount. One of an older pmfs does not know the question.
   */
  private ControlClient.Answer ask(Path mountpoint, Registry.Entry entry, Duration timeout)
      throws IOException, MountFailure {
    String request =
        "/umount?lazy=%s&purge=%s".formatted(lazy, purge) + (abandons ? "&abandon=true" : "");
    MountTable.Mount wanted = target;
    if (wanted != null && !mountpoint.toString().equals(entry.mountpoint())) {
      ControlClient.Answer answer = ask(entry, request + "&device=" + wanted.device(), timeout);
      if (answer.status() != HTTP_BAD_REQUEST) {
        return answer;
      }
    }
    return ask(entry, request, timeout);
  }

  private ControlClient.Answer ask(Registry.Entry entry, String request, Duration timeout)
      throws IOException, MountFailure {
    return new MountClient(entry, invocation.surroundings())
        .askOnlyThisOne(HttpMethod.POST, request, timeout);
  }

  /** Returns when to try again: after a pause, or, with {@code lazy} set, after the grace time. */
  private void awaitHolders(Path mountpoint) throws MountFailure {
    if (graceText == null || lazy) {
      throw busy(mountpoint);
    }
    if (System.nanoTime() - graceEnd < 0) {
      await(() -> false, Duration.ofMillis(GRACE_POLL_MS));
      return;
    }
    invocation.warn(
        "%s: still in use after %s: %s; detaching it anyway"
            .formatted(mountpoint, graceText, holders(mountpoint)));
    lazy = true;
  }

  private void unmountExternally(Path mountpoint, boolean isStale) throws MountFailure {
    // The daemon's heartbeat looks up a name now and then.
    for (int attempt = 0; ; attempt++) {
      try {
        unmountTarget(lazy || isStale);
        return;
      } catch (MountFailure e) {
        if (!e.isBusy()) {
          throw e;
        }
        if (attempt < ATTEMPTS) {
          await(() -> false, Duration.ofMillis(POLL_MS));
          continue;
        }
        awaitHolders(mountpoint);
      }
    }
  }

  /** Unmounts in place of the daemon's supervisor, which is gone. */
  private void unmountForDaemon(Path mountpoint) throws MountFailure {
    if (purge) {
      invocation.warn(mountpoint + ": nothing is purged: the daemon's supervisor is gone");
    }
    unmountExternally(mountpoint, false);
  }

  private MountFailure busy(Path mountpoint) {
    return new MountFailure(
        ExitStatus.FAILED,
        mountpoint + ": busy: " + holders(mountpoint) + "; end that first, or detach with --lazy");
  }

  private String holders(Path mountpoint) {
    List<String> holders =
        MountHolders.of(
            mountpoint, invocation.surroundings().root(), ProcessHandle.current().pid());
    return holders.isEmpty() ? unseenHolders() : String.join(", ", holders);
  }

  /** The mount may be busy by its copy in a namespace that follows this one, as containers do. */
  private String unseenHolders() {
    MountTable.Mount wanted = target;
    List<String> elsewhere =
        wanted == null
            ? List.of()
            : new MountViewers(invocation.surroundings())
                .elsewhere(wanted.device(), wanted.source());
    return elsewhere.isEmpty()
        ? "by a process that this user cannot see"
        : "in another mount namespace, that of " + String.join(", ", elsewhere);
  }

  /** Does nothing if the daemon just unmounted. While it lives, needs --lazy or --grace. */
  private void unmountSilentDaemon(
      Path mountpoint, Registry.Entry entry, Optional<ProcessHandle> process, IOException why)
      throws MountFailure {
    boolean alive = process.map(ProcessHandle::isAlive).orElse(false);
    if (!isMounted(mountpoint)) {
      return;
    }
    if (alive && !lazy && graceText == null) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: pid %d does not answer (%s); try --lazy, or kill %d"
              .formatted(mountpoint, entry.pid(), why.getMessage(), entry.pid()),
          why);
    }
    unmountTarget(true);
    invocation.say(
        "%s: detached without its daemon (pid %d), which did not answer"
            .formatted(mountpoint, entry.pid()));
  }

  private void awaitEnd(
      Path mountpoint, Registry.Entry entry, Optional<ProcessHandle> process, Duration timeout)
      throws MountFailure {
    if (!await(() -> !isMounted(mountpoint), timeout)) {
      throw new MountFailure(
          ExitStatus.FAILED, mountpoint + ": still mounted after " + timeoutText + "; see the log");
    }
    boolean inThisProcess = entry.pid() == ProcessHandle.current().pid();
    Condition end = () -> !process.map(ProcessHandle::isAlive).orElse(false) || servesOthers(entry);
    boolean gone = inThisProcess || await(end, USUAL_END);
    List<String> viewers = gone ? List.of() : viewers(entry);
    if (!viewers.isEmpty()) {
      invocation.say(
          "%s unmounted here, but not in other mount namespaces: %s; pid %d ends with the last of them"
              .formatted(mountpoint, String.join(", ", viewers), entry.pid()));
      return;
    }
    gone = gone || await(end, lazy ? LAZY_PATIENCE : timeout);
    if (!inThisProcess && gone && servesOthers(entry)) {
      invocation.say(
          "%s unmounted; pid %d still serves open files of another mount point; see pmfs status"
              .formatted(mountpoint, entry.pid()));
    } else if (!gone && lazy) {
      invocation.say(
          "%s detached; pid %d ends when the last open file is closed; see pmfs status"
              .formatted(mountpoint, entry.pid()));
    } else if (!gone) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: unmounted, but pid %d has not ended after %s; see %s, or kill %d"
              .formatted(mountpoint, entry.pid(), timeoutText, entry.logFile(), entry.pid()));
    }
  }

  /** Who keeps the session in other mount namespaces. */
  private List<String> viewers(Registry.Entry entry) {
    MountTable.Mount ended = target;
    String device = ended != null ? ended.device() : entry.device();
    return device == null
        ? List.of()
        : new MountViewers(invocation.surroundings()).elsewhere(device, entry.source());
  }

  /** Whether the target's daemon has ended that session, and goes on with others. */
  private boolean servesOthers(Registry.Entry entry) throws MountFailure {
    MountTable.Mount ended = target;
    return ended != null
        && entry.isOf(ended)
        && Registries.open(invocation.surroundings()).known().stream()
            .anyMatch(
                known ->
                    known.running()
                        && known.entry().pid() == entry.pid()
                        && !known.entry().isOf(ended));
  }

  /** The source itself, after a crash loop. */
  private void unmountStandIn(Path mountpoint, Registries registries) throws MountFailure {
    unmountExternally(mountpoint, false);
    registries.sweepHolders();
    if (purge) {
      throw new MountFailure(
          ExitStatus.PARTLY,
          mountpoint
              + ": unmounted, but nothing was purged: only the source was mounted there; mount it"
              + " again and umount --purge");
    }
  }

  private void unmountWithoutDaemon(Path mountpoint, Duration timeout) throws MountFailure {
    boolean stale = MountProbe.of(mountpoint) == MountProbe.STALE;
    unmountExternally(mountpoint, stale);
    if (!await(() -> !isMounted(mountpoint), timeout)) {
      throw new MountFailure(
          ExitStatus.FAILED, mountpoint + ": still mounted; there may be another mount below it");
    }
    if (stale) {
      invocation.say(mountpoint + ": removed a stale mount whose daemon had died");
    }
    if (purge) {
      throw new MountFailure(
          ExitStatus.PARTLY,
          mountpoint
              + ": unmounted, but without its daemon nothing was purged; mount it again and"
              + " umount --purge");
    }
  }

  /** A condition whose check may fail. */
  private interface Condition {
    boolean holds() throws MountFailure;
  }

  private static boolean await(Condition condition, Duration limit) throws MountFailure {
    long deadline = System.nanoTime() + limit.toNanos();
    while (!condition.holds()) {
      if (System.nanoTime() - deadline > 0) {
        return false;
      }
      try {
        Thread.sleep(POLL_MS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return false;
      }
    }
    return true;
  }
}
