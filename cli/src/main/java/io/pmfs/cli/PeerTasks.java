package io.pmfs.cli;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import com.google.gson.stream.JsonWriter;
import io.pmfs.cluster.Cluster;
import io.pmfs.cluster.Member;
import io.pmfs.cluster.PeerException;
import io.pmfs.fs.FileTask;
import io.pmfs.fs.TaskRequest;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.List;

/** The tasks of the other nodes of a cluster, each of which does its own share of the work. */
final class PeerTasks {
  private static final String PATH = "task";

  private final Cluster cluster;

  PeerTasks(Cluster cluster) {
    this.cluster = cluster;
  }

  /** Whether a task is to be done by all nodes. */
  static boolean isForAll(TaskRequest request) {
    return request instanceof TaskRequest.Stage || request instanceof TaskRequest.Check;
  }

  /** A task that was started here, together with the same on the other nodes. */
  FileTask everywhere(FileTask here) {
    List<Member> others = cluster.others();
    if (others.isEmpty()) {
      return here;
    }
    SharedTask task = new SharedTask(here, others, this);
    task.start(json(here.request()));
    return task;
  }

  boolean isThere(Member peer) {
    return cluster.others().contains(peer);
  }

  private static String json(TaskRequest request) {
    StringWriter text = new StringWriter();
    try (JsonWriter out = new JsonWriter(text)) {
      TaskJson.write(request, out);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return text.toString();
  }

  TaskReport start(Member peer, String request) throws PeerException {
    return report(peer, cluster.call(peer, "POST", PATH, request));
  }

  TaskReport latest(Member peer) throws PeerException {
    return report(peer, cluster.call(peer, "GET", PATH + "/latest", ""));
  }

  void cancel(Member peer) throws PeerException {
    cluster.call(peer, "DELETE", PATH + "/latest", "");
  }

  /** The first of what there is to say of single paths. */
  List<TaskResource.Finding> findings(Member peer) throws PeerException {
    try {
      String answer = cluster.call(peer, "GET", PATH + "/latest/findings", "");
      TaskResource.Findings page = new Gson().fromJson(answer, TaskResource.Findings.class);
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
