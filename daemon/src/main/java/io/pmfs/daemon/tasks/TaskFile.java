package io.pmfs.daemon.tasks;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.gson.stream.JsonWriter;
import io.pmfs.daemon.report.TaskJson;
import io.pmfs.tasks.PathFile;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * The record of a running task for the next daemon.
 *
 * @param resumes how many daemons in a row continued the task without running for long
 * @param isPart whether another node started it
 * @param others the other nodes of a shared task
 */
record TaskFile(
    String id, int resumes, boolean isPart, List<PeerTasks.Node> others, TaskRequest request) {

  TaskFile with(int newResumes, TaskRequest newRequest) {
    return new TaskFile(id, newResumes, isPart, others, newRequest);
  }

  /** The record for a daemon that continues from this position. */
  TaskFile at(long position, boolean isSound) {
    TaskRequest next =
        request instanceof TaskRequest.Prefetch prefetch ? prefetch.from(position) : request;
    return with(isSound ? 0 : resumes, next);
  }

  /** The name of the file with its list; null if it has none. */
  @Nullable String listName() {
    Path list = request.paths() instanceof PathFile inFile ? inFile.path() : null;
    return list == null ? null : String.valueOf(list.getFileName());
  }

  /** Replaces the file atomically. */
  void save(Path path) throws IOException {
    if (request.paths() instanceof PathFile && listName() == null) {
      throw new IOException("its list of paths could not be stored beside it");
    }
    Path next = next(path);
    try (JsonWriter out = new JsonWriter(Files.newBufferedWriter(next, UTF_8))) {
      out.beginObject();
      out.name("id").value(id);
      out.name("resumes").value(resumes);
      out.name("part").value(isPart);
      out.name("others").beginArray();
      for (PeerTasks.Node node : others) {
        out.value(node.id().toString()).value(node.name());
      }
      out.endArray();
      out.name("list").value(listName());
      out.name("request");
      TaskJson.write(request, out);
      out.endObject();
    }
    Files.move(next, path, StandardCopyOption.ATOMIC_MOVE);
  }

  private static Path next(Path path) {
    return path.resolveSibling(path.getFileName() + ".new");
  }

  static void remove(Path path) throws IOException {
    Files.deleteIfExists(next(path));
    Files.deleteIfExists(path);
  }

  /** Throws IOException or IllegalArgumentException if the file is malformed. */
  static TaskFile load(Path path, TaskLists lists) throws IOException {
    String id = null;
    TaskPaths list = null;
    int resumes = 0;
    boolean isPart = false;
    List<PeerTasks.Node> others = new ArrayList<>();
    TaskRequest request = null;
    try (JsonReader in = new JsonReader(Files.newBufferedReader(path, UTF_8))) {
      in.beginObject();
      while (in.hasNext()) {
        switch (in.nextName()) {
          case "id" -> id = in.nextString();
          case "resumes" -> resumes = in.nextInt();
          case "part" -> isPart = in.nextBoolean();
          case "others" -> {
            in.beginArray();
            while (in.hasNext()) {
              others.add(new PeerTasks.Node(UUID.fromString(in.nextString()), in.nextString()));
            }
            in.endArray();
          }
          case "list" -> list = readList(in, lists);
          case "request" -> request = TaskJson.parse(in, list);
          default -> throw new IllegalArgumentException("not a task's file");
        }
      }
      in.endObject();
    }
    if (id == null || !id.matches("[0-9a-f]{16}") || resumes < 0 || request == null) {
      throw new IllegalArgumentException("not a task's file");
    }
    return new TaskFile(id, resumes, isPart, others, request);
  }

  private static @Nullable TaskPaths readList(JsonReader in, TaskLists lists) throws IOException {
    if (in.peek() == JsonToken.NULL) {
      in.nextNull();
      return null;
    }
    return lists.open(in.nextString());
  }
}
