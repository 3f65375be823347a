package io.pmfs.cli.bugreport;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The pieces about one mount. Never accesses the mount itself, which may hang. */
public final class MountPieces {
  private static final Duration WALK = Duration.ofSeconds(10);
  private static final int OLDER_LOGS = 5;

  /** The paths of tiers and state in the daemon's status. */
  private static final Pattern PLACE =
      Pattern.compile("\"(?:path|stateDirectory)\"\\s{0,4}:\\s{0,4}\"(/[^\"\\\\]{1,4096})\"");

  /** Asks the daemon over its control socket; throws if it does not answer with a result. */
  public interface Daemon {
    /** The body of the answer to a GET. */
    String ask(String resource) throws IOException;
  }

  /**
   * One mount.
   *
   * @param device its number as in mountinfo, while its daemon runs; else null
   * @param pid the process of its daemon; 0 if there is none
   * @param owner the user, if root reports another user's mount: then root reads nothing outside of
   *     the log's directory at that user's word; else -1
   * @param log where the daemon logs or logged
   * @param daemon null if there is none
   */
  public record Mount(
      String mountpoint,
      @Nullable String device,
      long pid,
      long owner,
      Path log,
      @Nullable Daemon daemon) {}

  private final Path root;
  private final Mount mount;
  private final String folder;
  private @Nullable String silence;

  /** Pieces for a folder of the report. */
  public MountPieces(Path root, Mount mount, String folder) {
    this.root = root;
    this.mount = mount;
    this.folder = folder;
  }

  /** All pieces; after one unanswered request, nothing more is asked of the daemon. */
  public List<Piece> pieces(Set<String> ofPmfs) {
    List<Piece> pieces = new ArrayList<>();
    ProcessPieces process = new ProcessPieces(root, mount.pid());
    if (mount.pid() > 0 && (mount.owner() < 0 || mount.owner() == process.owner())) {
      pieces.addAll(process.pieces(folder, ofPmfs));
    }
    pieces.add(
        Piece.bytes(
            folder + "/fuse-connection.txt",
            "requests that wait in the kernel for the daemon",
            this::connection));
    Daemon daemon = mount.daemon();
    if (daemon != null) {
      pieces.add(asked(daemon, "version.json", "/version", "version of the daemon"));
      pieces.add(asked(daemon, "threads.txt", "/threads", "what each of its threads does"));
      pieces.add(
          asked(daemon, "configuration.json", "/configuration", "its options and their origins"));
      pieces.add(asked(daemon, "status.json", "/status", "output of pmfs status --json"));
      pieces.add(asked(daemon, "metrics.txt", "/metrics", "its counters"));
      if (mount.owner() < 0) {
        pieces.add(
            Piece.text(
                folder + "/tiers.txt",
                "sizes of the contents of tiers and state, no names",
                WALK,
                () -> tiers(ask(daemon, "/status"))));
      }
    }
    pieces.addAll(logs());
    return pieces;
  }

  private Piece asked(Daemon daemon, String name, String resource, String why) {
    return Piece.text(folder + "/" + name, why, WALK, () -> ask(daemon, resource));
  }

  private synchronized String ask(Daemon daemon, String resource) throws IOException {
    String before = silence;
    if (before != null) {
      throw new IOException(before);
    }
    try {
      return daemon.ask(resource);
    } catch (IOException e) {
      if (String.valueOf(e.getMessage()).startsWith("no answer")) {
        silence = "not asked for: the daemon left an earlier request unanswered";
      }
      throw e;
    }
  }

  private String connection() throws IOException {
    KernelFiles files = new KernelFiles(root);
    String device = mount.device();
    int number =
        device != null && device.matches("0:\\d{1,9}")
            ? Integer.parseInt(device.substring(2))
            : new MountLines(files.text("proc/self/mountinfo")).connection(mount.mountpoint());
    if (number < 0) {
      return "nothing is mounted there now\n";
    }
    String directory = "sys/fs/fuse/connections/" + number + "/";
    return files.all(
        List.of(
            directory + "waiting",
            directory + "max_background",
            directory + "congestion_threshold",
            "sys/class/bdi/0:" + number + "/read_ahead_kb"));
  }

  private static String tiers(String status) throws IOException {
    StringBuilder text = new StringBuilder();
    Matcher place = PLACE.matcher(status);
    while (place.find()) {
      text.append(TierSizes.text(Path.of(place.group(1))));
    }
    return text.toString();
  }

  private List<Piece> logs() {
    List<Piece> pieces = new ArrayList<>();
    pieces.add(log(mount.log(), "daemon.log", "the end of its log"));
    for (int i = 1; i <= OLDER_LOGS; i++) {
      Path older = mount.log().resolveSibling(mount.log().getFileName() + "." + i);
      pieces.add(log(older, "daemon.log." + i, "the end of an older log"));
    }
    return pieces;
  }

  private Piece log(Path file, String name, String why) {
    Callable<byte @Nullable []> content = () -> Tail.last(file, mount.owner());
    return new Piece(folder + "/" + name, why, Piece.SHORT, content);
  }
}
