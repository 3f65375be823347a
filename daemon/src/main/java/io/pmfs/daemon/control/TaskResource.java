package io.pmfs.daemon.control;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufInputStream;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.QueryStringDecoder;
import io.pmfs.daemon.report.FindingsPage;
import io.pmfs.daemon.report.TaskJson;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.daemon.tasks.PeerTasks;
import io.pmfs.daemon.tasks.TaskLists;
import io.pmfs.tasks.TaskFinding;
import io.pmfs.tasks.TaskRequest;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * {@code /tasks} on the control socket. {@code POST /tasks} starts a task, with its paths in the
 * JSON or, with the content type {@value #LIST_TYPE}, in a list after it. {@code GET /tasks/latest}
 * returns a {@link TaskReport}, {@code GET /tasks/latest/findings?from=0&limit=1000} the findings
 * about single paths. {@code DELETE /tasks/latest} cancels.
 */
public final class TaskResource {
  public static final String PATH = "/tasks";

  /** A line of JSON and a list of paths: docs/formats.md. */
  public static final String LIST_TYPE = "application/x-pmfs-paths";

  /** The limit for JSON, tens of thousands of paths. Longer lists need {@link #LIST_TYPE}. */
  static final int MAX_REQUEST_BYTES = 4 << 20;

  private static final int MAX_FINDINGS = 1000;

  private final KeptTasks tasks;
  private final boolean ofPeers;

  public TaskResource(KeptTasks tasks) {
    this(tasks, false);
  }

  private TaskResource(KeptTasks tasks, boolean ofPeers) {
    this.tasks = tasks;
    this.ofPeers = ofPeers;
  }

  /** For requests of other nodes, which concern this node's part only. */
  static TaskResource ofPeers(KeptTasks tasks) {
    return new TaskResource(tasks, true);
  }

  ControlAnswer answer(HttpMethod method, QueryStringDecoder query, ByteBuf body) {
    return switch (query.path()) {
      case "/tasks" ->
          method.equals(HttpMethod.POST)
              ? start(body)
              : ControlAnswer.wrongMethod(method, HttpMethod.POST.name());
      case "/tasks/latest" -> {
        if (method.equals(HttpMethod.DELETE)) {
          yield cancel();
        } else if (!method.equals(HttpMethod.GET)) {
          yield ControlAnswer.wrongMethod(method, "GET, DELETE");
        }
        yield latest();
      }
      case "/tasks/latest/findings" ->
          method.equals(HttpMethod.GET)
              ? findings(query.parameters())
              : ControlAnswer.wrongMethod(method, HttpMethod.GET.name());
      default ->
          ControlAnswer.error(
              HttpResponseStatus.NOT_FOUND,
              query.path() + ": try /tasks, /tasks/latest or /tasks/latest/findings");
    };
  }

  private ControlAnswer start(ByteBuf body) {
    TaskRequest request;
    try (JsonReader in =
        new JsonReader(new InputStreamReader(new ByteBufInputStream(body), UTF_8))) {
      request = TaskJson.parse(in, null);
      if (in.peek() != JsonToken.END_DOCUMENT) {
        throw new IOException("more values");
      }
    } catch (IOException e) {
      throw new IllegalArgumentException("not a task in JSON: more text follows", e);
    }
    return start(request);
  }

  /** Starts a task; if that fails, discards its list. */
  ControlAnswer start(TaskRequest request) {
    boolean isStarted = false;
    try {
      if (ofPeers && !PeerTasks.isForAll(request)) {
        return ControlAnswer.error(
            HttpResponseStatus.FORBIDDEN,
            "other nodes may start only stage and check; run it on this node");
      }
      ControlAnswer answer =
          ControlAnswer.ok(ofPeers ? tasks.startPart(request) : tasks.start(request));
      isStarted = true;
      return answer;
    } catch (IllegalStateException e) {
      return ControlAnswer.error(HttpResponseStatus.CONFLICT, String.valueOf(e.getMessage()));
    } finally {
      if (!isStarted) {
        request.paths().close();
      }
    }
  }

  TaskLists lists() {
    return tasks.lists();
  }

  /** Why no task can begin now; null if one can. */
  @Nullable ControlAnswer refusal() {
    String reason = tasks.refusal();
    return reason == null ? null : ControlAnswer.error(HttpResponseStatus.CONFLICT, reason);
  }

  private ControlAnswer cancel() {
    try {
      if (ofPeers) {
        tasks.cancelPart();
      } else {
        tasks.cancel();
      }
      return latest();
    } catch (IllegalStateException e) {
      return ControlAnswer.error(HttpResponseStatus.CONFLICT, String.valueOf(e.getMessage()));
    }
  }

  private ControlAnswer latest() {
    TaskReport report = ofPeers ? tasks.latestPart() : tasks.latest();
    return report == null
        ? ControlAnswer.error(
            HttpResponseStatus.NOT_FOUND, "no task has been started since the mount")
        : ControlAnswer.ok(report);
  }

  private ControlAnswer findings(Map<String, List<String>> parameters) {
    for (String name : parameters.keySet()) {
      if (!name.equals("from") && !name.equals("limit")) {
        throw new IllegalArgumentException("unknown parameter " + name + ": try from or limit");
      }
    }
    long from = number(parameters, "from", 0, Long.MAX_VALUE);
    int limit = (int) number(parameters, "limit", MAX_FINDINGS, MAX_FINDINGS);
    List<TaskFinding> found =
        ofPeers ? tasks.findingsOfPart(from, limit) : tasks.findings(from, limit);
    return ControlAnswer.ok(FindingsPage.of(found));
  }

  private static long number(
      Map<String, List<String>> parameters, String name, long absent, long largest) {
    List<String> values = parameters.getOrDefault(name, List.of(Long.toString(absent)));
    String value = values.get(0);
    if (values.size() != 1 || !value.matches("\\d{1,18}") || Long.parseLong(value) > largest) {
      throw new IllegalArgumentException(name + ": give one number, at most " + largest);
    }
    return Long.parseLong(value);
  }
}
