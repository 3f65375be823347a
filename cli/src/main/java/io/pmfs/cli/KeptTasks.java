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
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.UUID;
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
  private record Started(String id, boolean isPart, FileTask task) {
    TaskReport report() {
      return TaskReport.of(id, task);
    }

    /** What this node does of it. */
    FileTask own() {
      return task instanceof SharedTask shared ? shared.here() : task;
    }

    TaskReport ownReport() {
      return TaskReport.of(id, own());
    }
  }

  /**
   * What the file says.
   *
   * @param isPart whether another node began it
   * @param others the nodes that do the same for this one
   */
  private record Kept(
      String id, int resumes, boolean isPart, List<PeerTasks.Node> others, TaskRequest request) {}

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
  synchronized TaskReport start(TaskRequest request) {
    mustBeIdle();
    PeerTasks all = peers;
    List<PeerTasks.Node> others =
        all == null || !PeerTasks.isForAll(request) ? List.of() : all.nodes();
    return start(new Kept(newId(), 0, false, others, request)).report();
  }

  private void mustBeIdle() {
    TaskReport running = latest();
    if (running != null && running.isRunning()) {
      throw new IllegalStateException(running.activity() + IS_RUNNING);
    }
  }

  private static String newId() {
    byte[] id = new byte[8];
    new SecureRandom().nextBytes(id);
    return HexFormat.of().formatHex(id);
  }

  private Started start(Kept kept) {
    FileTask task = tasks.start(kept.request());
    PeerTasks all = peers;
    Started started =
        new Started(
            kept.id(), kept.isPart(), all == null ? task : all.everywhere(task, kept.others()));
    latest = started;
    log.info("task {}: {}", started.id(), started.report().activity());
    keep(kept);
    Thread end = new Thread(() -> awaitEnd(started), "task-end");
    end.setDaemon(true);
    end.start();
    return started;
  }

  // What other nodes ask for: this node's own part, so that two that follow each other's do not
  // count in circles or wait for each other.

  /**
   * Starts a task on this node only: another one starts it everywhere. If the same is running, it
   * is that.
   */
  synchronized TaskReport startPart(TaskRequest request) {
    Started running = latest;
    if (running != null
        && running.own().request().equals(request)
        && running.ownReport().isRunning()) {
      return running.ownReport();
    }
    mustBeIdle();
    return start(new Kept(newId(), 0, true, List.of(), request)).report();
  }

  /** What this node does or did last; null if that is nothing. */
  @Nullable TaskReport latestPart() {
    Started started = latest;
    return started == null ? null : started.ownReport();
  }

  List<TaskFinding> findingsOfPart(long from, int limit) {
    Started started = latest;
    return started == null ? List.of() : started.own().findings(from, limit);
  }

  /**
   * Stops what another node began here.
   *
   * @throws IllegalStateException if it was not another one
   */
  void cancelPart() {
    Started started = latest;
    if (started != null && !started.isPart()) {
      throw new IllegalStateException("this was begun here, and is to be ended here");
    }
    cancel();
  }

  /** Whether there is something for {@link #resume} to go on with. */
  boolean goesOn() {
    Path path = file;
    return path != null && Files.exists(path);
  }

  /** Goes on with what an earlier daemon of this session was at, if there is such a thing. */
  synchronized void resume() {
    Path path = file;
    // Another node may have begun its part again already.
    if (path == null || latest != null || !goesOn()) {
      return;
    }
    try {
      Kept kept = read(path);
      if (kept.resumes() >= MAX_RESUMES) {
        throw new IllegalArgumentException("it was gone on with " + MAX_RESUMES + " times");
      }
      start(new Kept(kept.id(), kept.resumes() + 1, kept.isPart(), kept.others(), kept.request()));
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
        out.name("others").beginArray();
        for (PeerTasks.Node node : kept.others()) {
          out.value(node.id().toString()).value(node.name());
        }
        out.endArray();
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
          case "request" -> request = TaskJson.read(in);
          default -> throw new IllegalArgumentException("not a task's file");
        }
      }
      in.endObject();
    }
    if (id == null || !id.matches("[0-9a-f]{16}") || resumes < 0 || request == null) {
      throw new IllegalArgumentException("not a task's file");
    }
    return new Kept(id, resumes, isPart, others, request);
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
