package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonWriter;
import io.pmfs.fs.FileTask;
import io.pmfs.fs.FileTasks;
import io.pmfs.fs.TaskFinding;
import io.pmfs.fs.TaskRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The tasks of one mounted dataset. The running one's request is kept in a file, so that the next
 * daemon goes on with it when this one dies or hands over. Safe for use by many threads.
 */
final class KeptTasks implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(KeptTasks.class);

  /** A task that brings the daemon down each time must not do so for ever. */
  private static final int MAX_RESUMES = 3;

  /** How the refusal of a second task ends. */
  static final String IS_RUNNING = " is running";

  private static final Duration LOOK_AGAIN = Duration.ofHours(1);

  private final FileTasks tasks;
  private final @Nullable PeerTasks peers;
  private final @Nullable Path file;
  private volatile @Nullable Started latest; // written under this
  private volatile boolean handedOver;

  /** What was running then; how this daemon ends it is nobody's business. */
  private volatile @Nullable TaskReport runningAtHandOver;

  /** A task with its name to the world. */
  private record Started(String id, FileTask task) {
    TaskReport report() {
      return TaskReport.of(id, task);
    }
  }

  /** What the file says. */
  private record Kept(String id, int resumes, boolean isPart, TaskRequest request) {}

  /** Takes over the tasks of a dataset that is shared with nobody. */
  KeptTasks(FileTasks tasks, @Nullable Path file) {
    this(tasks, null, file);
  }

  /**
   * Takes over the tasks.
   *
   * @param peers who does the same on the other nodes of a cluster; null if there are none
   * @param file where the running one's request is kept; null if no daemon comes after this one
   */
  KeptTasks(FileTasks tasks, @Nullable PeerTasks peers, @Nullable Path file) {
    this.tasks = tasks;
    this.peers = peers;
    this.file = file;
  }

  /**
   * Starts a task.
   *
   * @throws IllegalArgumentException if the request makes no sense for this dataset
   * @throws IllegalStateException if another one is running; the message says which
   */
  TaskReport start(TaskRequest request) {
    return start(request, false);
  }

  /** The same on this node only: another one starts it everywhere. */
  TaskReport startPart(TaskRequest request) {
    return start(request, true);
  }

  private synchronized TaskReport start(TaskRequest request, boolean isPart) {
    TaskReport running = latest();
    if (running != null && running.isRunning()) {
      throw new IllegalStateException(running.activity() + IS_RUNNING);
    }
    byte[] id = new byte[8];
    new SecureRandom().nextBytes(id);
    return start(new Kept(HexFormat.of().formatHex(id), 0, isPart, request)).report();
  }

  private Started start(Kept kept) {
    Started started = new Started(kept.id(), startWithPeers(kept));
    latest = started;
    log.info("task {}: {}", started.id(), started.report().activity());
    keep(kept);
    Thread end = new Thread(() -> awaitEnd(started), "task-end");
    end.setDaemon(true);
    end.start();
    return started;
  }

  private FileTask startWithPeers(Kept kept) {
    FileTask task = tasks.start(kept.request());
    PeerTasks others = peers;
    return others == null || kept.isPart() || !PeerTasks.isForAll(kept.request())
        ? task
        : others.everywhere(task);
  }

  /** Goes on with what an earlier daemon of this session was at, if there is such a thing. */
  synchronized void resume() {
    Path path = file;
    if (path == null || !Files.exists(path)) {
      return;
    }
    try {
      Kept kept = read(path);
      if (kept.resumes() >= MAX_RESUMES) {
        throw new IllegalArgumentException("it was gone on with " + MAX_RESUMES + " times");
      }
      start(new Kept(kept.id(), kept.resumes() + 1, kept.isPart(), kept.request()));
    } catch (IOException | RuntimeException e) {
      log.warn("{}: the task is not gone on with: {}", path, e.getMessage());
      remove();
    }
  }

  /** Forgets what a daemon of another session was at: nobody waits for it any more. */
  void forget() {
    remove();
  }

  private void keep(Kept kept) {
    Path path = file;
    if (path == null) {
      return;
    }
    Path next = next(path);
    try {
      try (JsonWriter out = new JsonWriter(Files.newBufferedWriter(next, UTF_8))) {
        out.beginObject();
        out.name("id").value(kept.id());
        out.name("resumes").value(kept.resumes());
        out.name("part").value(kept.isPart());
        out.name("request");
        TaskJson.write(kept.request(), out);
        out.endObject();
      }
      Files.move(next, path, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      log.warn("{}: the task ends with this daemon: {}", path, Reason.of(e));
      remove();
    }
  }

  private static Path next(Path path) {
    return path.resolveSibling(path.getFileName() + ".new");
  }

  private static Kept read(Path path) throws IOException {
    String id = null;
    int resumes = 0;
    boolean isPart = false;
    TaskRequest request = null;
    try (JsonReader in = new JsonReader(Files.newBufferedReader(path, UTF_8))) {
      in.beginObject();
      while (in.hasNext()) {
        switch (in.nextName()) {
          case "id" -> id = in.nextString();
          case "resumes" -> resumes = in.nextInt();
          case "part" -> isPart = in.nextBoolean();
          case "request" -> request = TaskJson.read(in);
          default -> throw new IllegalArgumentException("not a task's file");
        }
      }
      in.endObject();
    }
    if (id == null || !id.matches("[0-9a-f]{16}") || resumes < 0 || request == null) {
      throw new IllegalArgumentException("not a task's file");
    }
    return new Kept(id, resumes, isPart, request);
  }

  private void awaitEnd(Started started) {
    try {
      while (!started.task().await(LOOK_AGAIN)) {
        log.debug("task {} goes on", started.id());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return;
    }
    TaskReport report = started.report();
    log.info("task {}: {} {}", started.id(), report.state(), TaskSummary.of(report).text());
    synchronized (this) {
      Started newest = latest;
      if (newest != null && newest.id().equals(started.id())) {
        remove();
      }
    }
  }

  private void remove() {
    Path path = file;
    if (path == null || handedOver) {
      return;
    }
    try {
      Files.deleteIfExists(next(path));
      Files.deleteIfExists(path);
    } catch (IOException e) {
      log.warn("{}: cannot be removed: {}", path, Reason.of(e));
    }
  }

  /** The running task or else the last; null if there was none. */
  @Nullable TaskReport latest() {
    TaskReport goesOn = runningAtHandOver;
    Started started = latest;
    return goesOn != null || started == null ? goesOn : started.report();
  }

  List<TaskFinding> findings(long from, int limit) {
    Started started = latest;
    return started == null ? List.of() : started.task().findings(from, limit);
  }

  /** Asks the running task to stop, if there is one. */
  void cancel() {
    Started started = latest;
    if (started != null) {
      started.task().cancel();
    }
  }

  /** From now on what ends is left to the next daemon. */
  void handOver() {
    TaskReport report = latest();
    runningAtHandOver = report != null && report.isRunning() ? report : null;
    handedOver = true;
  }

  /** Cancels what is running and waits for it. */
  @Override
  public void close() {
    tasks.close();
    remove();
  }
}
