package io.pmfs.cli.control;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import com.google.gson.stream.JsonWriter;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.daemon.control.TaskResource;
import io.pmfs.daemon.report.FindingsPage;
import io.pmfs.daemon.report.TaskJson;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.metadata.PathText;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.places.Surroundings;
import io.pmfs.tasks.PathFile;
import io.pmfs.tasks.TaskRequest;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Controls the tasks of one mount. Requests wait while the daemon is being replaced. */
public final class TaskClient {
  private static final int HTTP_OK = 200;
  private static final int HTTP_BAD_REQUEST = 400;
  private static final int HTTP_NOT_FOUND = 404;
  private static final int HTTP_CONFLICT = 409;
  private static final int HTTP_TOO_LARGE = 413;
  private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);
  private static final Duration START_LIMIT = Duration.ofMinutes(2);
  private static final Duration ABSENCE_LIMIT = Duration.ofSeconds(60);
  private static final long POLL_MS = 200;

  private final Surroundings surroundings;
  private final Duration absenceLimit;

  /** As found last: daemons are replaced, and move their sockets. */
  private DaemonRecord mount;

  public TaskClient(DaemonRecord mount, Surroundings surroundings) {
    this(mount, surroundings, ABSENCE_LIMIT);
  }

  TaskClient(DaemonRecord mount, Surroundings surroundings, Duration absenceLimit) {
    this.mount = mount;
    this.surroundings = surroundings;
    this.absenceLimit = absenceLimit;
  }

  /** Produces a list of paths. */
  public interface Lines {
    long writeTo(PathList.Sink sink) throws IOException, MountFailure;
  }

  public TaskReport start(TaskRequest request) throws MountFailure {
    try {
      String text = json(request);
      return started(
          ask(
              socket ->
                  ControlClient.ask(
                      socket,
                      HttpMethod.POST,
                      TaskResource.PATH,
                      Unpooled.copiedBuffer(text, UTF_8),
                      START_LIMIT)));
    } catch (IOException e) {
      throw silent(e);
    }
  }

  private <T> T ask(MountClient.Question<T> question) throws IOException, MountFailure {
    MountClient client = new MountClient(mount, surroundings);
    T answer = client.ask(question);
    mount = client.daemon();
    return answer;
  }

  /**
   * Starts a task with a list of any length, sent as it is produced.
   *
   * @param request without paths
   * @return null if the list has no paths
   */
  public @Nullable TaskReport start(TaskRequest request, Lines lines) throws MountFailure {
    try {
      ControlClient.Body body =
          out -> {
            out.write((json(request) + "\n").getBytes(UTF_8));
            PathFile.Writer list = new PathFile.Writer(out);
            boolean isEmpty = lines.writeTo(list::add) == 0;
            list.end();
            return !isEmpty;
          };
      Optional<ControlClient.Answer> answer =
          ask(
              socket ->
                  Optional.ofNullable(
                      ControlClient.post(
                          socket, TaskResource.PATH, TaskResource.LIST_TYPE, body, START_LIMIT)));
      return answer.isPresent() ? started(answer.get()) : null;
    } catch (IOException e) {
      throw silent(e);
    }
  }

  private static String json(TaskRequest request) throws IOException {
    StringWriter text = new StringWriter();
    try (JsonWriter json = new JsonWriter(text)) {
      TaskJson.write(request, json);
    }
    return text.toString();
  }

  private TaskReport started(ControlClient.Answer answer) throws IOException, MountFailure {
    return switch (answer.status()) {
      case HTTP_OK -> TaskReport.parse(answer.body());
      case HTTP_BAD_REQUEST, HTTP_TOO_LARGE -> throw MountFailure.usage(clean(answer.error()));
      case HTTP_CONFLICT ->
          throw new MountFailure(
              ExitStatus.FAILED,
              clean(answer.error())
                  + (answer.error().endsWith(KeptTasks.IS_RUNNING) ? "; --wait waits for it" : ""));
      default -> throw failure(answer);
    };
  }

  /** The running or last task; null if there has been none since the mount began. */
  public @Nullable TaskReport latest() throws MountFailure {
    return report(HttpMethod.GET);
  }

  /** Requests that the running task stop, which may take a moment. */
  public @Nullable TaskReport cancel() throws MountFailure {
    return report(HttpMethod.DELETE);
  }

  private @Nullable TaskReport report(HttpMethod method) throws MountFailure {
    ControlClient.Answer answer = ask(method, TaskResource.PATH + "/latest");
    if (answer.status() == HTTP_NOT_FOUND) {
      return null;
    }
    if (answer.status() != HTTP_OK) {
      throw failure(answer);
    }
    try {
      return TaskReport.parse(answer.body());
    } catch (IOException e) {
      throw silent(e);
    }
  }

  /** A page of the latest task's findings; empty at the end. */
  public List<FindingsPage.Finding> findings(long from) throws MountFailure {
    ControlClient.Answer answer =
        ask(HttpMethod.GET, TaskResource.PATH + "/latest/findings?from=" + from);
    if (answer.status() != HTTP_OK) {
      throw failure(answer);
    }
    try {
      FindingsPage page = new Gson().fromJson(answer.body(), FindingsPage.class);
      if (page != null
          && page.findings() != null
          && page.findings().stream().allMatch(f -> f != null && f.isWhole())) {
        return page.findings();
      }
      throw silent(new IOException("not findings"));
    } catch (JsonSyntaxException e) {
      throw silent(new IOException("not findings: " + e.getMessage(), e));
    }
  }

  private ControlClient.Answer ask(HttpMethod method, String uri) throws MountFailure {
    long deadline = System.nanoTime() + absenceLimit.toNanos();
    while (true) {
      try {
        return ControlClient.ask(Path.of(mount.socket()), method, uri, ANSWER_LIMIT);
      } catch (IOException e) {
        KnownMounts knownMounts = KnownMounts.open(surroundings);
        // The session may have other mount points: its daemon then only moves its socket.
        Path mountpoint = knownMounts.placeOf(mount);
        MountTable.Mount mounted = surroundings.mounts().at(mountpoint);
        if (mounted == null || !mounted.isPmfs()) {
          throw new MountFailure(
              ExitStatus.FAILED, mountpoint + ": was unmounted before the task ended", e);
        }
        if (System.nanoTime() - deadline > 0 || !pause()) {
          throw silent(e);
        }
        DaemonRecord successor = knownMounts.find(mountpoint);
        mount = successor == null ? mount : successor;
      }
    }
  }

  private static boolean pause() {
    try {
      Thread.sleep(POLL_MS);
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private MountFailure failure(ControlClient.Answer answer) {
    return new MountFailure(
        ExitStatus.FAILED,
        mount.mountpoint()
            + ": "
            + clean(answer.error())
            + (answer.status() == HTTP_NOT_FOUND
                ? "; if its daemon is older than this command: pmfs upgrade"
                : ""));
  }

  private MountFailure silent(IOException e) {
    return new MountFailure(
        ExitStatus.FAILED,
        "%s: pid %d does not answer: %s; see %s"
            .formatted(mount.mountpoint(), mount.pid(), e.getMessage(), mount.logFile()),
        e);
  }

  private static String clean(String text) {
    return PathText.printable(text);
  }
}
