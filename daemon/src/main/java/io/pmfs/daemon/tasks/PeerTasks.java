package io.pmfs.daemon.tasks;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import com.google.gson.stream.JsonWriter;
import io.pmfs.cluster.client.Peers;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.daemon.report.FindingsPage;
import io.pmfs.daemon.report.TaskJson;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PathText;
import io.pmfs.tasks.FileTask;
import io.pmfs.tasks.Findings;
import io.pmfs.tasks.ScratchFiles;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskRequest;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** Runs tasks on the other nodes of a cluster, each of which does its own share of the work. */
public final class PeerTasks {
  /** A request to a peer is limited to 1 MiB; this leaves room for the other fields. */
  static final int MOST_PATH_BYTES = (1 << 20) - (64 << 10);

  private static final String PATH = "task";
  private static final int PAGE = 250;
  public static final Duration LOOK_AGAIN = Duration.ofMillis(500);

  private final Peers peers;
  private final ScratchFiles scratch;
  private final Duration lookAgain;

  /**
   * @param scratch files for the findings of other nodes
   * @param lookAgain the longest interval for polling a peer's part
   */
  public PeerTasks(Peers peers, ScratchFiles scratch, Duration lookAgain) {
    this.peers = peers;
    this.scratch = scratch;
    this.lookAgain = lookAgain;
  }

  /**
   * A participating node.
   *
   * @param id survives restarts
   * @param name for users
   */
  record Node(UUID id, String name) {}

  /** Whether all nodes take part in a task. */
  public static boolean isForAll(TaskRequest request) {
    return request instanceof TaskRequest.Stage || request instanceof TaskRequest.Check;
  }

  /** The other nodes at present. */
  List<Node> nodes() {
    return peers.others().stream().map(member -> new Node(member.id(), member.name())).toList();
  }

  /** Combines a task started here with the same task on other nodes. */
  FileTask everywhere(FileTask here, TaskRequest request, List<Node> others) {
    if (others.isEmpty()) {
      return here;
    }
    List<PeerPart> parts =
        others.stream()
            .map(node -> new PeerPart(node, this, new Findings(scratch), lookAgain))
            .toList();
    SharedTask task = new SharedTask(here, parts);
    task.start(pieces(request));
    return task;
  }

  /** The node's present daemon; null while there is none. */
  @Nullable Member find(UUID id) {
    return peers.others().stream()
        .filter(member -> member.id().equals(id))
        .findFirst()
        .orElse(null);
  }

  /** Splits a request, lazily, into pieces that are small enough for a peer. */
  static Iterable<TaskRequest> pieces(TaskRequest request) {
    return () -> new Pieces(request);
  }

  private static final class Pieces implements Iterator<TaskRequest> {
    private final TaskRequest request;
    private final TaskPaths.Cursor cursor;
    private @Nullable FileName next;

    Pieces(TaskRequest request) {
      this.request = request;
      this.cursor = request.paths().open();
      this.next = cursor.next();
    }

    @Override
    public boolean hasNext() {
      return next != null;
    }

    @Override
    public TaskRequest next() {
      List<FileName> paths = new ArrayList<>();
      long size = 0;
      for (FileName path; (path = next) != null; next = cursor.next()) {
        size += new Gson().toJson(PathText.encode(path)).getBytes(UTF_8).length + 1;
        if (size > MOST_PATH_BYTES && !paths.isEmpty()) {
          break;
        }
        paths.add(path);
      }
      if (paths.isEmpty()) {
        throw new NoSuchElementException();
      }
      return request.with(TaskPaths.of(paths));
    }
  }

  /** Makes a peer start its part; a peer that already runs the same request continues it. */
  TaskReport start(Member peer, TaskRequest request) throws PeerException {
    StringWriter text = new StringWriter();
    try (JsonWriter out = new JsonWriter(text)) {
      TaskJson.write(request, out);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return report(peer, peers.call(peer, "POST", PATH, text.toString()));
  }

  TaskReport latest(Member peer) throws PeerException {
    return report(peer, peers.call(peer, "GET", PATH + "/latest", ""));
  }

  void cancel(Member peer) throws PeerException {
    peers.call(peer, "DELETE", PATH + "/latest", "");
  }

  /** A page of the findings; empty at the end. */
  List<FindingsPage.Finding> findings(Member peer, long from) throws PeerException {
    try {
      String answer =
          peers.call(peer, "GET", PATH + "/latest/findings?from=" + from + "&limit=" + PAGE, "");
      FindingsPage page = new Gson().fromJson(answer, FindingsPage.class);
      if (page != null && page.findings() != null) {
        return page.findings().stream().filter(f -> f != null && f.isWhole()).toList();
      }
    } catch (JsonSyntaxException e) {
      throw new PeerException(PeerException.Kind.FAILED, peer + ": not findings");
    }
    throw new PeerException(PeerException.Kind.FAILED, peer + ": no findings");
  }

  private static TaskReport report(Member peer, String answer) throws PeerException {
    try {
      return TaskReport.parse(answer);
    } catch (IOException e) {
      throw new PeerException(PeerException.Kind.FAILED, peer + ": " + e.getMessage());
    }
  }
}
