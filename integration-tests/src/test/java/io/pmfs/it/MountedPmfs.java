package io.pmfs.it;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A mount and its daemon. Close unmounts as {@code pmfs umount} does and fails if that does.
 *
 * <p>A reader that waits for a daemon that never answers cannot be interrupted. So a mount has a
 * lifetime: at its end the daemon is killed and the mount detached, and the reader gets an error.
 */
final class MountedPmfs implements AutoCloseable {
  private static final ScheduledExecutorService WATCHDOG =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            Thread thread = new Thread(task, "mount watchdog");
            thread.setDaemon(true);
            return thread;
          });

  private final Installation installation;
  private final Path source;
  private final Path mountpoint;
  private final Path controlSocket;
  private final long pid;
  private final @Nullable ProcessHandle supervisor;
  private final ScheduledFuture<?> watch;
  private volatile boolean expired;
  private boolean gone;

  /**
   * Watches over a mount that was just made.
   *
   * @param said the line that mount printed; it names the process, which saves asking for the
   *     status
   */
  MountedPmfs(
      Installation installation, Path source, Path mountpoint, Duration lifetime, String said) {
    this.installation = installation;
    this.source = source;
    this.mountpoint = mountpoint;
    this.controlSocket = installation.controlSocket(mountpoint);
    Matcher matcher = Pattern.compile("pid (\\d+)").matcher(said);
    this.pid = matcher.find() ? Long.parseLong(matcher.group(1)) : status().number("pid");
    this.supervisor =
        ProcessHandle.of(pid)
            .flatMap(ProcessHandle::parent)
            .filter(parent -> commandLine(parent.pid()).contains("pmfs-supervise"))
            .orElse(null);
    this.watch = WATCHDOG.schedule(this::expire, lifetime.toMillis(), TimeUnit.MILLISECONDS);
  }

  private void expire() {
    expired = true;
    abandon();
  }

  Path source() {
    return source;
  }

  Path mountpoint() {
    return mountpoint;
  }

  /** A path in the mount as a byte string. */
  String path(String relative) {
    return mountpoint + "/" + relative;
  }

  long pid() {
    return pid;
  }

  /** The daemon that the supervisor has now, also one that has only begun; 0 if none. */
  long daemon() {
    ProcessHandle parent = supervisor;
    if (parent == null) {
      return runs(pid) ? pid : 0;
    }
    return parent
        .children()
        .mapToLong(ProcessHandle::pid)
        .filter(child -> runs(child) && commandLine(child).contains("io.pmfs.cli.Main"))
        .findFirst()
        .orElse(0);
  }

  /** Whether a supervisor holds it, which starts a daemon if there is none. */
  boolean isSupervised() {
    return supervisor != null && runs(supervisor.pid());
  }

  /** Asks the daemon something that the kernel does not know; waits for one that answers. */
  void awaitAnswer() {
    byte[] none = new byte[0];
    assertThat(Posix.outcome(Posix.getxattr(mountpoint.toString(), "user.not-there", none)))
        .isEqualTo("ENODATA");
  }

  Status status() {
    return Status.parse(ask("GET", "/status").expect(0).out());
  }

  /** A dump of the daemon's threads. */
  String threads() {
    return ask("GET", "/threads").expect(0).out();
  }

  /** Asks the daemon itself, as {@code pmfs status} and the others do, which start a JVM for it. */
  private Command ask(String method, String uri) {
    List<String> line =
        new ArrayList<>(List.of("curl", "-sSf", "--max-time", Machine.isEmulated() ? "300" : "30"));
    line.addAll(List.of("-X", method, "--unix-socket", controlSocket.toString()));
    line.add("http://pmfs" + uri);
    return Command.run(line.toArray(String[]::new));
  }

  /** Waits until another daemon than that one answers; says which. */
  long awaitSuccessor(long predecessor) {
    AtomicLong answering = new AtomicLong(predecessor);
    AtomicReference<Command> last = new AtomicReference<>();
    Await.until(
        () -> "a successor of " + predecessor + ": " + last.get() + "\n" + lastOfLogs(),
        Duration.ofSeconds(60),
        () -> {
          Command asked = ask("GET", "/status");
          last.set(asked);
          if (asked.exit() == 0) {
            answering.set(Status.parse(asked.out()).number("pid"));
          }
          return answering.get() != predecessor;
        });
    return answering.get();
  }

  /** For who looks at a failure: its scratch directory is gone by then. */
  private String lastOfLogs() {
    String runtimeDirectory = String.valueOf(controlSocket.getParent());
    return Command.run("sh", "-c", "tail -n 20 -- \"$1\"/*.log", "-", runtimeDirectory).out();
  }

  /** Waits until nothing is being staged or waits for it; answers the status that says so. */
  Status awaitStagingIdle() {
    return awaitCopies(0, Duration.ofSeconds(90));
  }

  /** Waits until the first tier holds that many copies and staging has nothing left to do. */
  Status awaitCopies(int count) {
    return awaitCopies(count, Duration.ofSeconds(90));
  }

  Status awaitCopies(int count, Duration deadline) {
    Status[] last = new Status[1];
    Await.until(
        () -> count + " copies and staging idle: " + last[0],
        deadline,
        () -> {
          last[0] = status();
          return last[0].number("tiers.0.copies") >= count && last[0].flag("staging.idle");
        });
    return last[0];
  }

  /** Kills the daemon, and who would start it again, and so leaves a dead mount behind. */
  void kill9() {
    long last = killAll();
    gone = true;
    watch.cancel(false);
    Await.until("daemon " + last + " ended", Duration.ofSeconds(30), () -> !runs(last));
  }

  /** Kills the daemon; as root the supervisor starts another. */
  void killDaemon() {
    Command.run("kill", "-KILL", Long.toString(daemon())).expect(0);
  }

  /** The supervisor first, so that it starts no other. */
  private long killAll() {
    long last = daemon();
    if (supervisor != null) {
      Command.run("kill", "-KILL", Long.toString(supervisor.pid()));
    }
    if (last != 0) {
      Command.run("kill", "-KILL", Long.toString(last));
    }
    return last;
  }

  private static String commandLine(long pid) {
    try {
      return Files.readString(Path.of("/proc/" + pid + "/cmdline"), ISO_8859_1);
    } catch (IOException e) {
      return "";
    }
  }

  void signal(String name) {
    Command.run("kill", "-" + name, Long.toString(pid)).expect(0);
  }

  void awaitGone() {
    Await.until("daemon " + pid + " ended", Duration.ofSeconds(30), () -> !runs(pid));
  }

  /** Says that the daemon was told to end in another way, so close has nothing to unmount. */
  void ended() {
    gone = true;
    watch.cancel(false);
  }

  /** Whether a process runs; one that only waits for its parent to look does not. */
  static boolean runs(long pid) {
    try {
      String stat = Files.readString(Path.of("/proc/" + pid + "/stat"));
      return stat.charAt(stat.lastIndexOf(')') + 2) != 'Z';
    } catch (IOException e) {
      return false;
    }
  }

  /** The last resort: nothing is left running or mounted. */
  void abandon() {
    watch.cancel(false);
    if (!gone) {
      killAll();
      detach(mountpoint);
    }
    gone = true;
  }

  static void detach(Path mountpoint) {
    if (Command.run("umount", "-l", mountpoint.toString()).exit() != 0) {
      Command.run("fusermount3", "-uz", mountpoint.toString());
    }
  }

  @Override
  public void close() {
    watch.cancel(false);
    if (expired) {
      throw new AssertionError("the mount's lifetime ended: its daemon was killed");
    }
    if (gone) {
      return;
    }
    Command asked = ask("POST", "/umount?lazy=false&purge=false");
    if (asked.exit() != 0 && Mounts.at(mountpoint)) {
      Command umount = installation.run("umount", mountpoint.toString());
      if (umount.exit() != 0) {
        abandon();
        throw new AssertionError("umount failed: " + umount + "\nbefore: " + asked);
      }
    }
    gone = true;
    Await.until("daemon ended after umount", Duration.ofSeconds(30), () -> daemon() == 0);
    if (Mounts.at(mountpoint)) {
      detach(mountpoint);
      throw new AssertionError("still mounted after umount: " + asked);
    }
  }
}
