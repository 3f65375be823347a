package io.pmfs.cli.status;

import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.requests.LineSplitter;
import io.pmfs.daemon.requests.LogLine;
import io.pmfs.daemon.requests.Profile;
import io.pmfs.daemon.requests.ProfileKey;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.Reason;
import io.pmfs.machine.TimeSpan;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs profile}: the number, origin and duration of requests to a mount. */
@Command(
    name = "profile",
    description = {
      "Sums up the requests to a mount as they arrive, or those in an access log. The sums are by"
          + " operation, path or process: their number, duration and failures.",
      "%nOnly requests that reach the daemon are counted. The kernel answers reads from its page"
          + " cache itself, and with passthrough it also reads copies itself: then only lookups and"
          + " opens of a file are counted. A mount is watched only while this command runs, and"
          + " needs no --access-log.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs profile /mnt/dataset",
      "  pmfs profile /mnt/dataset --by path --for 1m --json",
      "  pmfs profile /var/log/pmfs/dataset.access*          including rotated files",
      "  zcat old.gz | pmfs profile - --by directory"
    })
public final class ProfileCommand implements Callable<Integer> {
  private static final String STANDARD_INPUT = "-";
  private static final int BUFFER_BYTES = 64 << 10;
  private static final int MOST_ROWS = 4096;

  private final Invocation invocation;

  @Parameters(
      arity = "1..*",
      paramLabel = "MOUNTPOINT|FILE",
      description = "A mount point; or files of an access log, in any order, - for standard input.")
  private List<String> places;

  @Option(
      names = "--by",
      paramLabel = "KEY",
      defaultValue = "operation",
      description = "Group requests by operation, path, directory, pid or uid. Default: operation.")
  private String by;

  @Option(
      names = "--interval",
      paramLabel = "TIME",
      defaultValue = "2s",
      description = "How often to show a mount's table. Default: 2s.")
  private String interval;

  @Option(
      names = "--top",
      paramLabel = "N",
      defaultValue = "20",
      description =
          "How many rows to show, by total time; one more row sums up the rest. Default: 20.")
  private int top;

  @Option(
      names = "--for",
      paramLabel = "TIME",
      description = "How long to watch a mount; default: until interrupted or unmounted.")
  private @Nullable String span;

  @Option(
      names = "--json",
      description =
          "Print JSON, one object per line: for a mount one per interval and one for the whole"
              + " time.")
  private boolean json;

  public ProfileCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    ProfileKey key = key();
    Duration pause = MountFailure.parsing("--interval", interval, TimeSpan::parsePositive);
    Duration limit =
        span == null ? null : MountFailure.parsing("--for", span, TimeSpan::parsePositive);
    if (top < 1 || top > MOST_ROWS) {
      throw MountFailure.usage("--top: '" + top + "' is not a number from 1 to " + MOST_ROWS);
    }
    ProfileDisplay display = new ProfileDisplay(invocation, json);
    DaemonRecord mount = places.size() == 1 ? mount(places.get(0)) : null;
    if (mount != null) {
      return new ProfileWatch(invocation, mount, key, top, display).watch(pause, limit);
    }
    Profile profile = new Profile(key);
    for (String place : places) {
      parse(place, profile);
    }
    Profile.Report report = profile.report(true, profile.seconds(), top);
    if (report.all().count() == 0 && report.unreadable() > 0) {
      throw new MountFailure(
          ExitStatus.FAILED,
          String.join(", ", places) + ": not a line of an access log; see pmfs profile --help");
    }
    display.last(List.of(), report);
    return ExitStatus.DONE;
  }

  private ProfileKey key() throws MountFailure {
    for (ProfileKey key : ProfileKey.values()) {
      if (key.word().equals(by)) {
        return key;
      }
    }
    throw MountFailure.usage(
        "--by: '%s' is not known; choose one of %s"
            .formatted(
                by,
                Arrays.stream(ProfileKey.values())
                    .map(ProfileKey::word)
                    .collect(Collectors.joining(", "))));
  }

  /** The daemon that serves a mount point; null if the place is a file. */
  private @Nullable DaemonRecord mount(String place) throws MountFailure {
    if (place.equals(STANDARD_INPUT)) {
      return null;
    }
    Surroundings surroundings = invocation.surroundings();
    Path path = surroundings.resolveLinks(surroundings.resolve(place));
    KnownMounts knownMounts = KnownMounts.open(surroundings, invocation::warn);
    DaemonRecord entry = knownMounts.await(path);
    if (entry != null) {
      return entry;
    }
    MountTable.Mount mount = surroundings.mounts().at(path);
    if (mount != null && mount.isPmfs()) {
      throw knownMounts.absence(path);
    }
    if (Files.isDirectory(path)) {
      throw new MountFailure(
          ExitStatus.NOT_MOUNTED, path + ": not mounted by pmfs; pmfs status lists the mounts");
    }
    return null;
  }

  private void parse(String place, Profile profile) throws MountFailure {
    LineSplitter lines =
        new LineSplitter(
            line -> {
              if (!line.isEmpty()) {
                profile.add(LogLine.parse(line));
              }
            });
    try {
      if (place.equals(STANDARD_INPUT)) {
        copy(invocation.in(), lines);
      } else {
        try (InputStream in = Files.newInputStream(invocation.surroundings().resolve(place))) {
          copy(in, lines);
        }
      }
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.USAGE,
          place + ": " + Reason.of(e) + "; name a mount point, or a file of --access-log",
          e);
    }
  }

  private static void copy(InputStream in, LineSplitter lines) throws IOException {
    byte[] buffer = new byte[BUFFER_BYTES];
    int count;
    while ((count = in.read(buffer)) >= 0) {
      lines.accept(buffer, 0, count);
    }
    lines.end();
  }
}
