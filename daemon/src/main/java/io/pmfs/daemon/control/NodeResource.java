package io.pmfs.daemon.control;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.QueryStringDecoder;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.tasks.KeptTasks;
import java.util.function.Supplier;

/** Answers requests of other nodes about this node's status and its part of a task. */
public final class NodeResource implements NodeRequests {
  private static final String TASK = "task";
  private static final Gson GSON =
      new GsonBuilder().disableHtmlEscaping().serializeNulls().create();

  private final Supplier<StatusReport> status;
  private final KeptTasks tasks;

  public NodeResource(Supplier<StatusReport> status, KeptTasks tasks) {
    this.status = status;
    this.tasks = tasks;
  }

  @Override
  public Answer answer(String method, String path, String body) {
    ControlAnswer answer;
    try {
      if (path.equals("node")) {
        answer =
            method.equals(HttpMethod.GET.name())
                ? ControlAnswer.ok(status.get())
                : ControlAnswer.wrongMethod(HttpMethod.valueOf(method), HttpMethod.GET.name());
      } else if (path.startsWith(TASK)) {
        answer = task(HttpMethod.valueOf(method), path.substring(TASK.length()), body);
      } else {
        answer = ControlAnswer.error(HttpResponseStatus.NOT_FOUND, path + ": try node or task");
      }
    } catch (IllegalArgumentException e) {
      answer = ControlAnswer.error(HttpResponseStatus.BAD_REQUEST, String.valueOf(e.getMessage()));
    }
    return new Answer(answer.status().code(), GSON.toJson(answer.body()));
  }

  private ControlAnswer task(HttpMethod method, String rest, String body) {
    ByteBuf content = Unpooled.wrappedBuffer(body.getBytes(UTF_8));
    try {
      QueryStringDecoder query = new QueryStringDecoder(TaskResource.PATH + rest, UTF_8);
      return TaskResource.ofPeers(tasks).answer(method, query, content);
    } finally {
      content.release();
    }
  }
}
