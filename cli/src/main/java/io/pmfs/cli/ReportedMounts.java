package io.pmfs.cli;

import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cli.bugreport.LeftLogs;
import io.pmfs.cli.bugreport.MachinePieces;
import io.pmfs.cli.bugreport.MountPieces;
import io.pmfs.cli.bugreport.Piece;
import io.pmfs.cli.bugreport.ProcessPieces;
import io.pmfs.cli.bugreport.Redaction;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.MountClient;
import io.pmfs.daemon.process.DaemonLog;
import io.pmfs.machine.Limited;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownDaemon;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.mounts.Registry;
import io.pmfs.places.Surroundings;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.MountOption;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Collects for {@code pmfs bugreport} the pieces about the mounts in the registries. */
final class ReportedMounts {
  private static final Duration LIMIT = Duration.ofSeconds(5);
  private static final int HTTP_OK = 200;
  private static final Duration KNOWN_LIMIT = Duration.ofSeconds(10);
  private static final int MOST_MOUNTS = 64;
  private static final int MOST_OF_A_STRANGER = 8;

  /** Variables of pmfs that are not options; none of them is a secret. */
  private static final Set<String> VARIABLES =
      Set.of(
          "PMFS_CACHE_DIR",
          "PMFS_CALLER",
          "PMFS_CONFIG",
          "PMFS_CRASH_LIMIT",
          "PMFS_HEAP",
          "PMFS_JAVA",
          "PMFS_JAVA_OPTIONS",
          "PMFS_LAUNCH_DIR",
          "PMFS_RUNTIME_DIR",
          "PMFS_SERVED_JOB",
          "PMFS_SESSION_ALLOW_OTHER",
          "PMFS_SESSION_CAPABILITY",
          "PMFS_SESSION_DESCRIPTOR",
          "PMFS_SESSION_FILE",
          "PMFS_TRANSIENT_COPIES",
          "PMFS_WATCHDOG");

  private final Surroundings surroundings;
  private final Redaction redaction;
  private final Consumer<String> problem;

  /**
   * Reads nothing yet.
   *
   * @param redaction learns the secrets in the daemons' environments
   * @param problem receives a line about each problem
   */
  ReportedMounts(Surroundings surroundings, Redaction redaction, Consumer<String> problem) {
    this.surroundings = surroundings;
    this.redaction = redaction;
    this.problem = problem;
  }

  /** All pieces of a report about the wanted mounts, or about all mounts if none is wanted. */
  List<Piece> pieces(List<String> wanted) {
    KnownMounts opened = knownMounts();
    List<Registry> knownMounts = opened == null ? List.of() : opened.all();
    List<KnownDaemon> known = opened == null ? List.of() : known(opened);
    List<KnownDaemon> reported = wanted.isEmpty() ? known : wanted(wanted, known, knownMounts);
    Set<String> variables =
        Stream.concat(VARIABLES.stream(), MountOption.options().stream().map(MountOption::variable))
            .collect(Collectors.toSet());
    List<Piece> pieces = new ArrayList<>(OwnPieces.of(surroundings));
    pieces.add(Piece.text("mounts.txt", "mounts that pmfs knows of", LIMIT, () -> list(known)));
    pieces.addAll(
        new MachinePieces(surroundings.root())
            .pieces(surroundings.environment(), variables, places(reported, knownMounts)));
    Set<Path> logs = new HashSet<>();
    for (int i = 0; i < reported.size() && i < MOST_MOUNTS; i++) {
      addMount(reported.get(i), i + 1, variables, logs, pieces);
    }
    for (int i = 0; i < knownMounts.size(); i++) {
      addLeftLogs(knownMounts.get(i), i, logs, pieces);
    }
    return pieces;
  }

  private @Nullable KnownMounts knownMounts() {
    try {
      return Limited.call(LIMIT, () -> KnownMounts.open(surroundings, problem));
    } catch (IOException e) {
      problem.accept("mounts: " + e.getMessage());
      return null;
    }
  }

  /** At most some of each stranger, so that none takes the room of others. */
  private List<KnownDaemon> known(KnownMounts knownMounts) {
    try {
      Map<Long, Integer> counts = new HashMap<>();
      return Limited.call(KNOWN_LIMIT, knownMounts::known).stream()
          .filter(
              one ->
                  one.owner() < 0
                      || counts.merge(one.owner(), 1, Integer::sum) <= MOST_OF_A_STRANGER)
          .toList();
    } catch (IOException e) {
      problem.accept("mounts: " + e.getMessage());
      return List.of();
    }
  }

  private List<KnownDaemon> wanted(
      List<String> texts, List<KnownDaemon> known, List<Registry> knownMounts) {
    List<KnownDaemon> found = new ArrayList<>();
    for (String text : texts) {
      Path path = surroundings.resolve(text);
      KnownDaemon one = at(path, known);
      if (one == null) {
        path = withoutLinks(path);
        one = at(path, known);
      }
      if (one == null) {
        problem.accept(
            path + ": no daemon of this user is known there; searched for its log anyway");
        one = unknown(path, knownMounts);
      }
      if (one != null) {
        found.add(one);
      }
    }
    return found;
  }

  /** Prefers the daemon of the present mount to that of a detached one. */
  private @Nullable KnownDaemon at(Path mountpoint, List<KnownDaemon> known) {
    List<KnownDaemon> there =
        known.stream()
            .filter(one -> one.daemon().mountpoint().equals(mountpoint.toString()))
            .toList();
    MountTable.Mount mount = mountAt(mountpoint);
    return there.stream()
        .filter(one -> mount == null || one.daemon().isOf(mount))
        .findFirst()
        .or(() -> there.stream().findFirst())
        .orElse(null);
  }

  private MountTable.@Nullable Mount mountAt(Path mountpoint) {
    try {
      return surroundings.mounts().at(mountpoint);
    } catch (MountFailure e) {
      return null;
    }
  }

  /** The path itself if its links cannot be resolved in time. */
  private Path withoutLinks(Path path) {
    try {
      return Limited.call(LIMIT, () -> surroundings.resolveLinks(path));
    } catch (IOException e) {
      problem.accept(path + ": " + e.getMessage());
      return path;
    }
  }

  private @Nullable KnownDaemon unknown(Path mountpoint, List<Registry> knownMounts) {
    if (knownMounts.isEmpty()) {
      return null;
    }
    Path directory = knownMounts.get(0).directory();
    String log = DaemonLog.defaultFile(mountpoint, directory, surroundings).toString();
    return new KnownDaemon(
        DaemonRecord.of(mountpoint.toString(), "", 0, "", log), false, directory, -1);
  }

  private static String list(List<KnownDaemon> known) {
    StringBuilder text = new StringBuilder();
    for (KnownDaemon one : known) {
      DaemonRecord entry = one.daemon();
      text.append(
          "%s on %s, pid %d, %s, log %s, in %s%n"
              .formatted(
                  entry.source(),
                  entry.mountpoint(),
                  entry.pid(),
                  one.running() ? entry.detached() ? "running, detached" : "running" : "DEAD",
                  entry.logFile(),
                  one.directory()));
    }
    return text.append(known.size()).append(" mounts\n").toString();
  }

  private static Set<String> places(List<KnownDaemon> reported, List<Registry> knownMounts) {
    Set<String> places = new HashSet<>();
    knownMounts.forEach(registry -> places.add(registry.directory().toString()));
    for (KnownDaemon one : reported) {
      if (one.daemon().source() != null && one.daemon().source().startsWith("/")) {
        places.add(one.daemon().source());
      }
      places.add(log(one).toString());
    }
    return places;
  }

  /** The mount's log. For another user's mount, only a file in that user's runtime directory. */
  private static Path log(KnownDaemon one) {
    Path given = Path.of(one.daemon().logFile() == null ? "daemon.log" : one.daemon().logFile());
    boolean isTrusted = one.owner() < 0 || one.directory().equals(given.getParent());
    return isTrusted ? given : one.directory().resolve(String.valueOf(given.getFileName()));
  }

  private void addMount(
      KnownDaemon one, int number, Set<String> variables, Set<Path> logs, List<Piece> pieces) {
    DaemonRecord entry = one.daemon();
    String mountpoint = entry.mountpoint();
    Path name = Path.of(mountpoint).getFileName();
    String folder = "mounts/" + number + "-" + Piece.plain(name == null ? "root" : name.toString());
    Path log = log(one);
    if (!log.toString().equals(entry.logFile())) {
      problem.accept(entry.logFile() + ": a user's log that root does not read; ask that user");
    }
    logs.add(log);
    long pid = one.running() ? entry.pid() : 0;
    ProcessPieces process = new ProcessPieces(surroundings.root(), pid);
    if (pid > 0 && (one.owner() < 0 || one.owner() == process.owner())) {
      redaction.learn(process.environment());
    }
    if (!one.running()) {
      problem.accept(mountpoint + ": has no daemon to ask");
    }
    MountPieces.Daemon daemon = one.running() ? resource -> ask(entry, resource) : null;
    pieces.addAll(
        new MountPieces(
                surroundings.root(),
                new MountPieces.Mount(
                    mountpoint,
                    one.running() ? entry.device() : null,
                    pid,
                    one.owner(),
                    log,
                    daemon),
                folder)
            .pieces(variables));
    pieces.add(
        Piece.text(
            folder + "/configuration-here.json",
            "the configuration that a new mount by this user would have",
            LIMIT,
            () -> configuration(mountpoint)));
  }

  /** The text of an answer; JSON with one line per value. */
  private String ask(DaemonRecord mount, String resource) throws IOException {
    ControlClient.Answer answer;
    try {
      answer = new MountClient(mount, surroundings).askOnlyThisOne(HttpMethod.GET, resource, LIMIT);
    } catch (MountFailure e) {
      throw new IOException(e.line(), e);
    }
    if (answer.status() != HTTP_OK) {
      throw new IOException(answer.error());
    }
    if (!answer.body().startsWith("{")) {
      return answer.body();
    }
    try {
      return pretty(JsonParser.parseString(answer.body()));
    } catch (JsonParseException e) {
      return answer.body();
    }
  }

  private static String pretty(JsonElement json) {
    return new GsonBuilder()
            .setPrettyPrinting()
            .disableHtmlEscaping()
            .serializeNulls()
            .create()
            .toJson(json)
        + "\n";
  }

  private String configuration(String mountpoint) throws IOException {
    try {
      return pretty(
          Configuration.resolve(
                  new Configuration.Request(Map.of(), null, null, mountpoint), surroundings)
              .toJson());
    } catch (MountFailure e) {
      // Without its message, which may quote the file.
      throw new IOException("cannot be resolved: pmfs config " + mountpoint + " says why", e);
    }
  }

  private void addLeftLogs(Registry registry, int number, Set<Path> known, List<Piece> pieces) {
    long owner = registry.stranger();
    Path directory =
        owner < 0 ? DaemonLog.directory(registry.directory(), surroundings) : registry.directory();
    String folder = number == 0 ? "logs" : "logs-" + (number + 1);
    try {
      pieces.addAll(Limited.call(LIMIT, () -> LeftLogs.pieces(directory, owner, known, folder)));
    } catch (IOException e) {
      problem.accept(directory + ": " + e.getMessage());
    }
  }
}
