package io.pmfs.cli.copies;

import io.pmfs.cache.CacheClient;
import io.pmfs.cache.CacheReport;
import io.pmfs.cache.CacheService;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.process.DaemonLog;
import io.pmfs.machine.ByteSize;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.machine.TimeSpan;
import io.pmfs.places.NotOwnException;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierSpec;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code pmfs node-cache}: the cache service for the mounts of all users of a node. */
@Command(
    name = "node-cache",
    description = {
      "Keeps one set of copies for the mounts of all users of this node. They name it with pmfs"
          + " mount --node-cache. Stays in the foreground, for a systemd unit.",
      "%nRun it under a dedicated account. It needs no access to the source: mounts pass it open"
          + " files that their users may read. No other account should have access to the directory"
          + " of copies. --status prints the status of a running cache.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs node-cache --socket /run/pmfs-cache/socket --tier ssd:/local/pmfs-cache:80%%"
          + " --source-filesystem /lustre",
      "  pmfs mount --node-cache /run/pmfs-cache/socket /lustre/imagenet /mnt/dataset",
      "  pmfs node-cache --status /run/pmfs-cache/socket"
    })
public final class NodeCacheCommand implements Callable<Integer> {
  private static final Logger log = LoggerFactory.getLogger(NodeCacheCommand.class);

  private final Invocation invocation;

  @Option(
      names = "--socket",
      paramLabel = "PATH",
      description =
          "The socket for mounts; the permissions of its directory decide who can connect.")
  private @Nullable String socket;

  @Option(
      names = "--tier",
      paramLabel = "ssd:PATH[:CAPACITY]",
      description =
          "Where to keep copies: a dedicated directory, and a size or a share of its disk (default:"
              + " all of it). A twentieth of the disk always stays free.")
  private @Nullable String tier;

  @Option(
      names = "--source-filesystem",
      paramLabel = "DIR",
      split = ",",
      description =
          "A directory of the file system whose files may be copied, which may be remounted later."
              + " Repeat for more, or separate them by commas.")
  private List<String> sources = new ArrayList<>();

  @Option(
      names = "--evict-after",
      paramLabel = "TIME",
      description =
          "How long a copy must be unused before it is evicted for another copy of the same user,"
              + " or of any user while its own user is within the fair share. Default:"
              + " ${DEFAULT-VALUE}.",
      defaultValue = "1h")
  private String evictAfter;

  @Option(
      names = "--log-level",
      paramLabel = "LEVEL",
      description = "error, warn, info or debug; the log goes to standard error.",
      defaultValue = "info")
  private String logLevel;

  @Option(
      names = "--status",
      paramLabel = "SOCKET",
      description =
          "Instead print the status of the cache at this socket. Users see their own share, root"
              + " sees all. Ends with 4 while a thread of the cache fails.")
  private @Nullable String status;

  @Option(names = "--json", description = "With --status: print one JSON object.")
  private boolean json;

  public NodeCacheCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    if (status != null) {
      CacheReport report = report(surroundings.resolve(status));
      print(report);
      return report.trouble() == null ? ExitStatus.DONE : ExitStatus.PARTLY;
    }
    if (socket == null || tier == null || sources.isEmpty()) {
      throw MountFailure.usage(
          "node-cache: give --socket, --tier and --source-filesystem, or --status SOCKET");
    }
    TierSpec place =
        MountFailure.parsing("--tier", tier, text -> TierSpec.parse(text, surroundings));
    if (!place.kind().word().equals("ssd") || place.compression() != null) {
      throw MountFailure.usage("--tier " + tier + ": write it as ssd:PATH:CAPACITY");
    }
    List<Path> listed = new ArrayList<>();
    for (String source : sources) {
      Path directory = surroundings.resolve(source);
      if (!Files.isDirectory(directory)) {
        throw MountFailure.usage(directory + ": --source-filesystem: not a directory");
      }
      listed.add(directory);
    }
    serve(surroundings.resolve(socket), place, listed);
    return ExitStatus.DONE;
  }

  private void serve(Path at, TierSpec place, List<Path> listed) throws MountFailure {
    Duration unused = MountFailure.parsing("--evict-after", evictAfter, TimeSpan::parse);
    DaemonLog.startOnStandardError(logLevel);
    try (CacheService service = open(at, place, unused, listed)) {
      CountDownLatch ended = new CountDownLatch(1);
      invocation
          .atShutdown()
          .accept(
              () -> {
                close(service);
                ended.countDown();
                return true;
              });
      log.info("{}: ready, copies in {}, of files on {}", at, place, listed);
      ended.await();
    } catch (NotOwnException e) {
      throw MountFailure.usage(
          "node-cache: " + Reason.of(e) + "; choose another --tier or --socket");
    } catch (IOException e) {
      throw MountFailure.usage("node-cache: " + Reason.of(e));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      DaemonLog.stop();
    }
  }

  private CacheService open(Path at, TierSpec place, Duration unused, List<Path> listed)
      throws IOException {
    OwnPath own = OwnPath.ofProcess();
    Path directory = own.filledDirectory(place.path());
    Path socketDirectory = own.existing(at.resolveSibling(""));
    FileStore disk = Files.getFileStore(directory);
    long capacity = place.capacity().on(disk.getTotalSpace());
    return CacheService.open(
        new CacheService.Settings(
            socketDirectory.resolve(at.getFileName()),
            directory,
            capacity,
            unused,
            listed,
            CacheService.Limits.of(capacity)),
        invocation.clock());
  }

  private static void close(CacheService service) {
    try {
      service.close();
    } catch (IOException e) {
      log.warn("cannot close the cache: {}", e.getMessage());
    }
  }

  private static CacheReport report(Path at) throws MountFailure {
    try {
      return CacheClient.report(at);
    } catch (FsException e) {
      throw new MountFailure(ExitStatus.FAILED, at + ": " + reason(e.errno()), e);
    }
  }

  private static String reason(Errno errno) {
    return switch (errno) {
      case EAGAIN -> "the cache does not answer";
      case EPIPE -> "the cache has closed the connection: it serves no more now, or is ending";
      case EPROTO -> "not a pmfs cache of this version";
      default -> "no cache answers there: " + errno + "; is it running?";
    };
  }

  private void print(CacheReport report) {
    if (json) {
      invocation.showJson(report.toJson());
      return;
    }
    if (report.trouble() != null) {
      say("trouble  %s", report.trouble());
    }
    CacheReport.Room room = report.room();
    say(
        "copies   %,d, %s of %s; %,d removed to make room",
        room.copies(),
        ByteSize.format(room.usedBytes()),
        ByteSize.format(room.capacityBytes()),
        room.evicted());
    say("files    %,d of %s", room.usedFiles(), limit(room.capacityFiles()));
    if (room.leftOpen() > 0) {
      say("left     %,d copies are still open although mounts released them", room.leftOpen());
    }
    say(
        "mounts   %,d connected; %,d requests answered with a copy, %,d without",
        report.connections(), report.answered(), report.refused());
    say(
        "copying  %,d files, %,d wait; %s read from the source, %,d failed",
        report.copying(), report.waiting(), ByteSize.format(report.copiedBytes()), report.failed());
    room.users()
        .forEach(
            (uid, user) ->
                say(
                    "user %-10s %s, %,d files, open %s",
                    uid == CacheReport.NOBODY ? "unknown" : Integer.toUnsignedString(uid),
                    ByteSize.format(user.usedBytes()),
                    user.usedFiles(),
                    ByteSize.format(user.openBytes())));
  }

  /** Some file systems allocate inodes on demand. */
  private static String limit(long files) {
    return files == Long.MAX_VALUE ? "any number" : String.format(Locale.ROOT, "%,d", files);
  }

  private void say(String format, Object... values) {
    invocation.show(String.format(Locale.ROOT, format, values));
  }
}
