package io.pmfs.cli.mount;

import io.pmfs.daemon.Daemon;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.KeptMount;
import io.pmfs.daemon.MountChecks;
import io.pmfs.daemon.PreviousMount;
import io.pmfs.daemon.dataset.MountPlaces;
import io.pmfs.daemon.process.DaemonLog;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.mounts.MountOwner;
import io.pmfs.mounts.Registration;
import io.pmfs.mounts.Registry;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierPlace;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code pmfs mount}: checks the machine and settings, then becomes the daemon of a mount. */
@Command(
    name = "mount",
    description = {
      "Mounts a dataset read-only and serves it from node-local tiers. Returns when the mount"
          + " answers.",
      "%nWrite sizes as 200G or 64MiB (powers of 1024), 200GB (powers of 1000), or 10%% of a disk;"
          + " write times as 500ms, 30s or 2m. Every option can also be set as PMFS_<OPTION> in the"
          + " environment (PMFS_TIER separates tiers by spaces or commas) or in pmfs.toml; see pmfs"
          + " config --help.%n"
    },
    sortOptions = false,
    customSynopsis = "pmfs mount [OPTION]... [SOURCE] MOUNTPOINT",
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs mount /lustre/imagenet /mnt/dataset",
      "  pmfs mount --tier pm:/mnt/pmem0/pmfs:200G --tier ssd:/local/pmfs:80%% /lustre/imagenet"
          + " /mnt/dataset",
      "  pmfs mount /lustre/shards /mnt/dataset          tar files: shows the files inside them",
      "  pmfs mount /mnt/dataset          the rest from [mount.\"/mnt/dataset\"] in pmfs.toml",
      "  pmfs mount --user ada /lustre/imagenet /mnt/dataset          as root, for ada",
      "  pmfs mount --foreground --log-level debug ./data ./mnt"
    })
public final class MountCommand implements Callable<Integer> {
  /**
   * The limit for an orderly stop after a signal; by default systemd kills after 90 s, Slurm after
   * 30 s.
   */
  private static final Duration STOP_LIMIT = Duration.ofSeconds(25);

  /** The command line of a daemon that continues a session, and ignores its arguments. */
  public static final List<String> RESUME = List.of("mount", "/");

  private static final Logger log = LoggerFactory.getLogger(MountCommand.class);

  private final Invocation invocation;

  @Spec private CommandSpec spec;

  @Parameters(
      index = "0",
      paramLabel = "[SOURCE] MOUNTPOINT",
      description =
          "The dataset's directory or tar file, and an empty directory to mount it on; or /dev/fd/N,"
              + " an open /dev/fuse that another program has mounted.")
  private String first;

  @Parameters(index = "1", arity = "0..1", hidden = true)
  private @Nullable String second;

  @Option(names = "--foreground", description = "Stay in the foreground; log to stderr as well.")
  private boolean foreground;

  @Option(names = "--config", paramLabel = "FILE", description = "Configuration file.")
  private @Nullable String config;

  @Option(
      names = "--format",
      description =
          "Create an empty pool on every tier that is a device or a file; overwrites its content.")
  private boolean format;

  public MountCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    Supervision supervision = invocation.supervision();
    if (supervision == null || !supervision.isResumed()) {
      begin(supervision);
      return ExitStatus.DONE;
    }
    try {
      resume(supervision);
    } catch (MountFailure e) {
      throw new MountFailure(ExitStatus.UNAVAILABLE, e.line(), e);
    }
    return ExitStatus.DONE;
  }

  private void begin(@Nullable Supervision supervision) throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    Configuration configuration = resolve();
    requireMountpoint(configuration);
    MountSettings settings = configuration.toSettings(surroundings);
    new MountPlaces(settings, surroundings).check(); // before the registry creates its directory
    Registry registry = Registry.open(surroundings);
    PreviousMount previous =
        new PreviousMount(settings, registry, invocation, PreviousMount.PATIENCE);
    try (Registration registration = previous.replace()) {
      new MountChecks(settings, surroundings, surroundings.mounts(), supervision).run();
      registry.sweepHolders(surroundings);
      KeptMount.sweep(registry, surroundings);
      SessionSettings session = begin(configuration, settings, registry);
      SharedMount shared = new SharedMount(session, settings, registry, invocation);
      if (shared.join()) {
        return;
      }
      // Never in a daemon that takes over, because its mount already serves copies from there.
      if (format) {
        TierPlace.format(settings.copies().tiers());
      }
      try {
        serve(settings, session, registry, registration, previous);
      } catch (MountFailure e) {
        // Another mount of this dataset may have begun at the same time.
        if (e.exitStatus() != ExitStatus.IN_USE || !shared.join()) {
          throw e;
        }
      }
    }
  }

  /** Detects a missing mount point: a single argument should be an empty directory. */
  private void requireMountpoint(Configuration configuration) throws MountFailure {
    Path only = configuration.mountpoint();
    if (second == null
        && only != null
        && !configuration.settings().containsKey(MountOption.SOURCE)
        && isContent(only)) {
      throw MountFailure.usage(
          "%s: no source configured for this mount point; to mount it, give a mount point after it: pmfs mount %s MOUNTPOINT"
              .formatted(first, first));
    }
  }

  private static boolean isContent(Path path) {
    try (Stream<Path> entries = Files.list(path)) {
      return entries.findAny().isPresent();
    } catch (NotDirectoryException e) {
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  private SessionSettings begin(
      Configuration configuration, MountSettings settings, Registry registry) throws MountFailure {
    return SessionSettings.begin(configuration, settings, logFile(settings, registry), foreground);
  }

  private void resume(Supervision supervision) throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    Registry registry = Registry.open(surroundings);
    SessionSettings session = supervision.settings();
    MountSettings settings;
    if (session == null) {
      // An older pmfs, which recorded only the source, in the mount table, began the session.
      Configuration configuration =
          resolve().withSourceOf(surroundings.mounts(), supervision.device());
      settings = configuration.toSettings(surroundings);
      session = begin(configuration, settings, registry);
    } else {
      settings = session.toSettings(surroundings);
    }
    serve(settings, session, registry, registry.register(settings.mountpoint()), null);
  }

  private Configuration resolve() throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    Configuration.suspectVariables(surroundings).forEach(invocation::warn);
    return Configuration.resolve(
        new Configuration.Request(
            MountOptions.given(spec.commandLine().getParseResult()),
            config,
            second == null ? null : first,
            second == null ? first : second),
        surroundings);
  }

  private Path logFile(MountSettings settings, Registry registry) {
    Path configured = settings.observation().logFile();
    return configured != null
        ? configured
        : DaemonLog.defaultFile(
            settings.mountpoint(), registry.directory(), invocation.surroundings());
  }

  private void serve(
      MountSettings settings,
      SessionSettings session,
      Registry registry,
      @Nullable Registration registration,
      @Nullable PreviousMount previous)
      throws MountFailure {
    Path mountpoint = settings.mountpoint();
    try (registration) {
      Path logFile = logFile(settings, registry);
      DaemonLog.start(logFile, settings.observation().logLevel(), session.foreground());
      try {
        PreviousMount.Opening<Daemon> opening =
            () -> new Daemon(settings, session, logFile, invocation);
        Daemon daemon = previous == null ? opening.open() : previous.await(opening);
        invocation.atShutdown().accept(() -> daemon.stop(STOP_LIMIT));
        daemon.run(
            registry,
            registration,
            () -> announce(settings, daemon.description(), logFile, registry));
      } catch (MountFailure | RuntimeException e) {
        // Also logged: a daemon in the background has no terminal.
        log.error("{}: stopped by an error", mountpoint, e);
        throw e;
      }
    } finally {
      DaemonLog.stop();
    }
  }

  private void announce(
      MountSettings settings, String description, Path logFile, Registry registry) {
    hold(settings.mountpoint(), registry);
    invocation.say(
        "%s mounted on %s (%spid %d, log %s)"
            .formatted(
                settings.source().path(),
                settings.mountpoint(),
                description.isEmpty() ? "" : description + "; ",
                ProcessHandle.current().pid(),
                logFile));
    invocation.detach().accept(logFile);
  }

  /** Records who mounted; a failure is only logged, because the mount is listed anyway. */
  private void hold(Path mountpoint, Registry registry) {
    Surroundings surroundings = invocation.surroundings();
    try {
      MountTable.Mount mount = surroundings.mounts().at(mountpoint);
      Supervision supervision = invocation.supervision();
      if (mount != null && (supervision == null || !supervision.isResumed())) {
        registry.hold(
            MountOwner.calling(
                mountpoint, mount.device(), invocation.clock().instant(), surroundings));
      }
    } catch (MountFailure e) {
      log.warn("{}: who mounted it is not recorded: {}", mountpoint, e.line());
    }
  }
}
