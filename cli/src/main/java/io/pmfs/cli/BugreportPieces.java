package io.pmfs.cli;

import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cli.bugreport.KernelFiles;
import io.pmfs.cli.bugreport.OwnFiles;
import io.pmfs.cli.bugreport.Piece;
import io.pmfs.cli.bugreport.Redaction;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.MountClient;
import io.pmfs.cli.doctor.DoctorCommand;
import io.pmfs.daemon.process.DaemonLog;
import io.pmfs.daemon.process.Version;
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
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The pieces of {@code pmfs bugreport}: about this installation, the machine, mounts and former
 * mounts. Enters no mount, because it may hang.
 */
final class BugreportPieces {
  private static final Duration LIMIT = Duration.ofSeconds(5);
  private static final Duration LONG = Duration.ofSeconds(10);
  private static final Duration OF_DOCTOR = Duration.ofSeconds(20);
  private static final int HTTP_OK = 200;
  private static final int MOST_MOUNTS = 64;
  private static final int MOST_OF_A_STRANGER = 8;

  /** The paths of tiers and state in a daemon's status. */
  private static final Pattern PLACE =
      Pattern.compile("\"(?:path|stateDirectory)\"\\s{0,4}:\\s{0,4}\"(/[^\"\\\\]{1,4096})\"");

  /** Variables of pmfs that are not options. None is a secret. */
  private static final String VARIABLES =
      """
      PMFS_CACHE_DIR PMFS_CALLER PMFS_CONFIG PMFS_CRASH_LIMIT PMFS_HEAP PMFS_JAVA \
      PMFS_JAVA_OPTIONS PMFS_LAUNCH_DIR PMFS_RUNTIME_DIR PMFS_SERVED_JOB \
      PMFS_SESSION_ALLOW_OTHER PMFS_SESSION_CAPABILITY PMFS_SESSION_DESCRIPTOR PMFS_SESSION_FILE \
      PMFS_TRANSIENT_COPIES PMFS_WATCHDOG\
      """;

  private final Surroundings surroundings;
  private final KernelFiles kernel;
  private final Redaction redaction;
  private final Consumer<String> problem;
  private final Set<String> variables =
      Stream.concat(
              Stream.of(VARIABLES.split(" ", -1)),
              MountOption.options().stream().flatMap(option -> option.variables().stream()))
          .collect(Collectors.toSet());
  private final List<Piece> pieces = new ArrayList<>();
  private final Set<Path> logs = new HashSet<>();

  /** Wanted mount points of which nothing is known. */
  private final List<Path> unknown = new ArrayList<>();

  /** Daemons that left a request unanswered, which get no more requests. */
  private final Set<DaemonRecord> silent = ConcurrentHashMap.newKeySet();

  /**
   * @param redaction is given the secrets in the daemons' environments
   * @param problem receives a line about each problem
   */
  BugreportPieces(Surroundings surroundings, Redaction redaction, Consumer<String> problem) {
    this.surroundings = surroundings;
    this.kernel = new KernelFiles(surroundings.root());
    this.redaction = redaction;
    this.problem = problem;
  }

  /** All pieces of a report about the wanted mounts, or about all mounts if none is wanted. */
  List<Piece> list(List<String> wanted) {
    KnownMounts opened = limited("mounts", LIMIT, () -> KnownMounts.open(surroundings, problem));
    List<Registry> registries = opened == null ? List.of() : opened.all();
    List<KnownDaemon> known = opened == null ? List.of() : known(opened);
    List<KnownDaemon> reported = new ArrayList<>(wanted.isEmpty() ? known : List.of());
    wanted.forEach(text -> reported.addAll(wanted(text, known, registries)));
    Set<String> places = new HashSet<>();
    registries.forEach(registry -> places.add(registry.directory().toString()));
    for (KnownDaemon one : reported) {
      places.add(log(one).toString());
      if (String.valueOf(one.daemon().source()).startsWith("/")) {
        places.add(one.daemon().source());
      }
    }
    add("pmfs.txt", "version, Java, libraries, user", LIMIT, this::installation);
    String doctor = "output of pmfs doctor --json";
    add("doctor.json", doctor, OF_DOCTOR, () -> DoctorCommand.json(surroundings) + "\n");
    add("mounts.txt", "mounts that pmfs knows of", LIMIT, () -> text(known));
    pieces.addAll(kernel.ofMachine(surroundings.environment(), variables, places));
    for (int i = 0; i < reported.size() && i < MOST_MOUNTS; i++) {
      Path name = Path.of(reported.get(i).daemon().mountpoint()).getFileName();
      String folder = "mounts/%d-%s/".formatted(i + 1, Piece.plain(name == null ? "root" : name));
      addMount(reported.get(i), folder);
    }
    for (int i = 0; i < registries.size(); i++) {
      addLeftLogs(registries.get(i), i == 0 ? "logs/" : "logs-" + (i + 1) + "/");
    }
    return pieces;
  }

  /** The wanted mount points that have neither a daemon nor a log; after {@link #list}. */
  List<Path> unknown() {
    return unknown;
  }

  private void add(String name, String why, Duration limit, Callable<String> text) {
    pieces.add(Piece.text(name, why, limit, text));
  }

  /** The result; null, after recording a problem, if the action failed or took too long. */
  private <T> @Nullable T limited(String what, Duration limit, Callable<T> action) {
    try {
      return Limited.call(limit, action);
    } catch (IOException e) {
      problem.accept(what + ": " + e.getMessage());
      return null;
    }
  }

  /**
   * The mounts of a registry, limited for each other user, so that one user's leave room for those
   * of all.
   */
  private List<KnownDaemon> known(KnownMounts registries) {
    List<KnownDaemon> all = limited("mounts", LONG, registries::known);
    Map<Long, Integer> counts = new HashMap<>();
    return Stream.ofNullable(all)
        .flatMap(List::stream)
        .filter(
            one ->
                one.owner() < 0 || counts.merge(one.owner(), 1, Integer::sum) <= MOST_OF_A_STRANGER)
        .toList();
  }

  private List<KnownDaemon> wanted(
      String text, List<KnownDaemon> known, List<Registry> registries) {
    Path path = surroundings.resolve(text);
    List<KnownDaemon> found = at(path, known);
    if (found.isEmpty()) {
      Path resolved = limited(text, LIMIT, () -> surroundings.resolveLinks(path));
      Path place = resolved == null ? path : resolved;
      found = at(place, known);
      if (found.isEmpty()) {
        problem.accept(
            place + ": no daemon of this user is known there; searched for a log anyway");
        found = registries.stream().limit(1).map(one -> former(place, one.directory())).toList();
        if (found.stream().noneMatch(one -> Files.exists(log(one)))) {
          unknown.add(place);
        }
      }
    }
    return found;
  }

  /** The daemons of a mount point, that of the present mount before those of detached ones. */
  private List<KnownDaemon> at(Path place, List<KnownDaemon> known) {
    MountTable.Mount mount = limited("mounts", LIMIT, () -> surroundings.mounts().at(place));
    return known.stream()
        .filter(one -> one.daemon().mountpoint().equals(place.toString()))
        .sorted(Comparator.comparing(one -> mount != null && !one.daemon().isOf(mount)))
        .limit(1)
        .toList();
  }

  private KnownDaemon former(Path mountpoint, Path directory) {
    String log = DaemonLog.defaultFile(mountpoint, directory, surroundings).toString();
    return new KnownDaemon(
        DaemonRecord.of(mountpoint.toString(), "", 0, "", log), false, directory, -1);
  }

  private static String text(List<KnownDaemon> known) {
    StringBuilder text = new StringBuilder();
    for (KnownDaemon one : known) {
      DaemonRecord entry = one.daemon();
      String state = !one.running() ? "DEAD" : entry.detached() ? "running, detached" : "running";
      text.append(
          "%s on %s, pid %d, %s, log %s, in %s%n"
              .formatted(
                  entry.source(),
                  entry.mountpoint(),
                  entry.pid(),
                  state,
                  entry.logFile(),
                  one.directory()));
    }
    return text + "%d mounts\n".formatted(known.size());
  }

  /** The mount's log; for another user's mount, only if it is in that user's runtime directory. */
  private static Path log(KnownDaemon one) {
    Path given = Path.of(one.daemon().logFile() == null ? "daemon.log" : one.daemon().logFile());
    boolean isTrusted = one.owner() < 0 || one.directory().equals(given.getParent());
    return isTrusted ? given : one.directory().resolve(String.valueOf(given.getFileName()));
  }

  private void addMount(KnownDaemon one, String folder) {
    DaemonRecord entry = one.daemon();
    Path log = log(one);
    logs.add(log);
    if (!log.toString().equals(entry.logFile())) {
      problem.accept(entry.logFile() + ": root does not read this user's log; ask the user for it");
    }
    if (!one.running()) {
      problem.accept(entry.mountpoint() + ": has no daemon");
    } else if (entry.pid() > 0 && (one.owner() < 0 || one.owner() == kernel.ownerOf(entry.pid()))) {
      redaction.learn(kernel.environmentOf(entry.pid()));
      pieces.addAll(kernel.ofProcess(entry.pid(), folder, variables));
    }
    pieces.add(
        Piece.bytes(
            folder + "fuse-connection.txt",
            "requests waiting in the kernel for the daemon",
            () -> kernel.connection(one.running() ? entry.device() : null, entry.mountpoint())));
    if (one.running()) {
      addAsked(folder + "version.json", "the daemon's version", entry);
      addAsked(folder + "threads.txt", "what each of its threads does", entry);
      addAsked(folder + "configuration.json", "its options and their origins", entry);
      addAsked(folder + "status.json", "output of pmfs status --json", entry);
      addAsked(folder + "metrics.txt", "its counters", entry);
    }
    if (one.running() && one.owner() < 0) {
      String why = "sizes of the contents of tiers and state, no names";
      add(folder + "tiers.txt", why, LONG, () -> tiers(ask(entry, "/status")));
    }
    pieces.addAll(OwnFiles.logs(log, one.owner(), folder));
    add(
        folder + "configuration-here.json",
        "the configuration that a new mount by this user would have",
        LIMIT,
        () -> configuration(entry.mountpoint()));
  }

  /** Adds a daemon's answer; the file's name without its extension is the resource. */
  private void addAsked(String name, String why, DaemonRecord daemon) {
    String resource = name.replaceFirst(".*(/[^.]*).*", "$1");
    add(name, why, LONG, () -> ask(daemon, resource));
  }

  /** The text of an answer, with JSON pretty-printed. */
  private String ask(DaemonRecord daemon, String resource) throws IOException {
    if (silent.contains(daemon)) {
      throw new IOException("not requested: the daemon left an earlier request unanswered");
    }
    ControlClient.Answer answer;
    try {
      answer =
          new MountClient(daemon, surroundings).askOnlyThisOne(HttpMethod.GET, resource, LIMIT);
    } catch (MountFailure e) {
      throw new IOException(e.line(), e);
    } catch (IOException e) {
      if (String.valueOf(e.getMessage()).startsWith("no answer")) {
        silent.add(daemon);
      }
      throw e;
    }
    if (answer.status() != HTTP_OK) {
      throw new IOException(answer.error());
    }
    try {
      boolean isJson = answer.body().startsWith("{");
      return isJson ? pretty(JsonParser.parseString(answer.body())) : answer.body();
    } catch (JsonParseException e) {
      return answer.body();
    }
  }

  private static String pretty(JsonElement json) {
    GsonBuilder writer = new GsonBuilder().setPrettyPrinting().disableHtmlEscaping();
    return writer.serializeNulls().create().toJson(json) + "\n";
  }

  private static String tiers(String status) throws IOException {
    StringBuilder text = new StringBuilder();
    for (String place : PLACE.matcher(status).results().map(found -> found.group(1)).toList()) {
      text.append(OwnFiles.sizes(Path.of(place)));
    }
    return text.toString();
  }

  private String configuration(String mountpoint) throws IOException {
    try {
      Configuration.Request here = new Configuration.Request(Map.of(), null, null, mountpoint);
      return pretty(Configuration.resolve(here, surroundings).toJson());
    } catch (MountFailure e) {
      // Without the exception's message, which may quote the file.
      throw new IOException(
          "cannot be resolved: run pmfs config " + mountpoint + " for the reason", e);
    }
  }

  private void addLeftLogs(Registry registry, String folder) {
    long owner = registry.stranger();
    Path of = registry.directory();
    Path directory = owner < 0 ? DaemonLog.directory(of, surroundings) : of;
    List<Piece> left =
        limited(directory.toString(), LIMIT, () -> OwnFiles.left(directory, owner, logs, folder));
    pieces.addAll(left == null ? List.of() : left);
  }

  private String installation() {
    StringBuilder text = new StringBuilder("pmfs " + Version.withCommit() + "\n");
    for (String property :
        List.of("java.vm.name", "java.vm.version", "java.vendor", "java.home", "os.arch")) {
      text.append(property + " " + System.getProperty(property) + "\n");
    }
    text.append("flags " + ManagementFactory.getRuntimeMXBean().getInputArguments() + "\n");
    text.append(
        "user %d (%s), in %s%n%n"
            .formatted(
                surroundings.uid(), surroundings.userName(), surroundings.workingDirectory()));
    for (String library : System.getProperty("java.class.path", "").split(File.pathSeparator, -1)) {
      text.append(new File(library).length() + " " + library + "\n");
    }
    return text.toString();
  }
}
