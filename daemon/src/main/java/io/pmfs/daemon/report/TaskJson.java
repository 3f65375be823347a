package io.pmfs.daemon.report;

import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.gson.stream.JsonWriter;
import com.google.gson.stream.MalformedJsonException;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PathText;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskRequest;
import java.io.EOFException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Task requests as JSON objects, on the control socket and in the file of a running task. Paths in
 * a list are not part of the JSON.
 */
public final class TaskJson {
  private TaskJson() {}

  /** The word for a request's kind in JSON and in {@link TaskReport}. */
  static String word(TaskRequest request) {
    if (request instanceof TaskRequest.Stage stage) {
      return stage.metadataOnly() ? "metadata" : "stage";
    }
    if (request instanceof TaskRequest.Check) {
      return "check";
    }
    if (request instanceof TaskRequest.Prefetch) {
      return "prefetch";
    }
    return request instanceof TaskRequest.Verify ? "verify" : "evict";
  }

  public static void write(TaskRequest request, JsonWriter out) throws IOException {
    out.beginObject();
    out.name("task").value(word(request));
    if (request instanceof TaskRequest.Stage stage) {
      write(stage.limits(), out);
      out.name("tier").value(stage.tier());
      out.name("pin").value(stage.pin());
      out.name("replicated").value(stage.replicated());
    } else if (request instanceof TaskRequest.Check check) {
      out.name("replicated").value(check.replicated());
      if (check.deep()) {
        // Older nodes of a cluster do not know this field.
        out.name("deep").value(true);
      }
    } else if (request instanceof TaskRequest.Prefetch prefetch) {
      write(prefetch.limits(), out);
      out.name("windowBytes").value(prefetch.windowBytes());
      out.name("from").value(prefetch.from());
    } else if (request instanceof TaskRequest.Verify verify) {
      out.name("source").value(verify.withSource());
      out.name("repair").value(verify.repair());
    }
    if (request.paths() instanceof TaskPaths.InMemory few && few.count() > 0) {
      out.name("paths").beginArray();
      for (FileName path : few.paths()) {
        out.value(PathText.encode(path));
      }
      out.endArray();
    }
    out.endObject();
  }

  private static void write(TaskRequest.Limits limits, JsonWriter out) throws IOException {
    out.name("jobs").value(limits.jobs());
    out.name("maxBytesPerSecond").value(limits.maxBytesPerSecond());
    out.name("maxOperationsPerSecond").value(limits.maxOperationsPerSecond());
  }

  /** The fields read so far; a field of another kind of task is an error. */
  private static final class Fields {
    private @Nullable String task;
    private @Nullable TaskPaths paths;
    private @Nullable String tier;
    private boolean pin;
    private boolean replicated;
    private int jobs;
    private long maxBytesPerSecond;
    private long maxOperationsPerSecond;
    private long windowBytes;
    private long from;
    private boolean source;
    private boolean repair;
    private boolean deep;
    private final List<String> others = new ArrayList<>();

    void parse(String name, JsonReader in) throws IOException {
      if (in.peek() == JsonToken.NULL) {
        in.nextNull();
        return;
      }
      if (!name.equals("task") && !name.equals("paths")) {
        others.add(name);
      }
      switch (name) {
        case "task" -> task = in.nextString();
        case "paths" -> paths = TaskPaths.of(readPaths(in));
        case "tier" -> tier = in.nextString();
        case "pin" -> pin = in.nextBoolean();
        case "replicated" -> replicated = in.nextBoolean();
        case "jobs" -> jobs = in.nextInt();
        case "maxBytesPerSecond" -> maxBytesPerSecond = in.nextLong();
        case "maxOperationsPerSecond" -> maxOperationsPerSecond = in.nextLong();
        case "windowBytes" -> windowBytes = in.nextLong();
        case "from" -> from = in.nextLong();
        case "source" -> source = in.nextBoolean();
        case "repair" -> repair = in.nextBoolean();
        case "deep" -> deep = in.nextBoolean();
        default -> throw new IllegalArgumentException("unknown field " + name);
      }
    }

    TaskRequest request() {
      TaskPaths given = paths;
      if (task == null || given == null || given.count() == 0) {
        throw new IllegalArgumentException("the fields task and paths must not be empty");
      }
      switch (task) {
        case "stage" -> {
          allow("tier", "pin", "replicated", "jobs", "maxBytesPerSecond", "maxOperationsPerSecond");
          return new TaskRequest.Stage(given, limits(), tier, pin, false, replicated);
        }
        case "metadata" -> {
          allow("tier", "pin", "replicated", "jobs", "maxBytesPerSecond", "maxOperationsPerSecond");
          return new TaskRequest.Stage(given, limits(), null, false, true, false);
        }
        case "prefetch" -> {
          allow("windowBytes", "from", "jobs", "maxBytesPerSecond", "maxOperationsPerSecond");
          return new TaskRequest.Prefetch(given, limits(), windowBytes, from);
        }
        case "verify" -> {
          allow("source", "repair");
          return new TaskRequest.Verify(given, source, repair);
        }
        case "check" -> {
          allow("replicated", "deep");
          return new TaskRequest.Check(given, replicated, deep);
        }
        case "evict" -> {
          allow();
          return new TaskRequest.Evict(given);
        }
        default ->
            throw new IllegalArgumentException(
                "unknown task " + task + ": try stage, metadata, check, prefetch, verify or evict");
      }
    }

    private TaskRequest.Limits limits() {
      return new TaskRequest.Limits(jobs, maxBytesPerSecond, maxOperationsPerSecond);
    }

    private void allow(String... names) {
      for (String other : others) {
        if (!List.of(names).contains(other)) {
          throw new IllegalArgumentException("a task " + task + " has no field " + other);
        }
      }
    }
  }

  /**
   * Parses a request. Throws IllegalArgumentException, with a message for the user, if it is
   * malformed.
   *
   * @param listed its list of paths; null if the JSON has the paths
   */
  public static TaskRequest parse(JsonReader in, @Nullable TaskPaths listed) throws IOException {
    try {
      Fields fields = new Fields();
      in.beginObject();
      while (in.hasNext()) {
        fields.parse(in.nextName(), in);
      }
      in.endObject();
      if (listed != null && fields.paths != null) {
        throw new IllegalArgumentException("a task has paths or a list of them, not both");
      }
      fields.paths = listed == null ? fields.paths : listed;
      return fields.request();
    } catch (MalformedJsonException
        | EOFException
        | IllegalStateException
        | NumberFormatException e) {
      // Without Gson's second line, a link.
      String where = String.valueOf(e.getMessage()).lines().findFirst().orElse("");
      throw new IllegalArgumentException("not a task in JSON: " + where, e);
    }
  }

  private static List<FileName> readPaths(JsonReader in) throws IOException {
    List<FileName> paths = new ArrayList<>();
    in.beginArray();
    while (in.hasNext()) {
      paths.add(TaskPaths.checked(PathText.decode(in.nextString())));
    }
    in.endArray();
    return paths;
  }
}
