package io.pmfs.daemon.tasks;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.daemon.report.TaskReport;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.tasks.PathFile;
import io.pmfs.tasks.ScratchFiles;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskProgress.State;
import io.pmfs.tasks.TaskRequest;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class KeptTasksTest {
  private static final TaskRequest REQUEST =
      new TaskRequest.Evict(TaskPaths.of(List.of(FileName.of("a"), FileName.ofLatin1("\u00ff"))));

  @TempDir private Path directory;
  private Path file = Path.of("unset");
  private final FakeTasks fakes = new FakeTasks();
  private final FakeTasks nextFakes = new FakeTasks();

  @BeforeEach
  void nameFile() {
    file = directory.resolve("task.json");
  }

  private KeptTasks first() {
    return new KeptTasks(fakes, file);
  }

  private KeptTasks next() {
    return new KeptTasks(nextFakes, file);
  }

  @Test
  void start_whileOneRuns_saysWhich() {
    KeptTasks tasks = first();
    tasks.start(REQUEST);

    assertThatThrownBy(() -> tasks.start(REQUEST))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("evicting is running");
    assertThat(fakes.started).hasSize(1);
  }

  @Test
  void start_afterTheLastEnded_isAnotherTask() {
    KeptTasks tasks = first();
    TaskReport one = tasks.start(REQUEST);
    fakes.last().is(FakeTasks.progress(State.ENDED, 1, 0, 0, 0));

    assertThat(tasks.start(REQUEST).id()).isNotEqualTo(one.id());
  }

  @Test
  void resume_afterADeath_goesOnUnderTheSameName() {
    TaskReport begun = first().start(REQUEST);

    KeptTasks next = next();
    next.resume();

    assertThat(nextFakes.last().request()).isEqualTo(REQUEST);
    TaskReport latest = next.latest();
    assertThat(latest).isNotNull().extracting(TaskReport::id).isEqualTo(begun.id());
  }

  @Test
  void resume_afterTheTaskEnded_doesNothing() {
    first().start(REQUEST);
    fakes.last().is(FakeTasks.progress(State.ENDED, 1, 0, 0, 0));
    Await.until("the task is forgotten", () -> !Files.exists(file));

    next().resume();

    assertThat(nextFakes.started).isEmpty();
  }

  @Test
  void resume_afterClose_doesNothing() {
    KeptTasks tasks = first();
    tasks.start(REQUEST);
    tasks.close();
    assertThat(fakes.closed).isTrue();

    next().resume();

    assertThat(nextFakes.started).isEmpty();
  }

  @Test
  void resume_afterHandOver_goesOn() {
    KeptTasks tasks = first();
    tasks.start(REQUEST);
    tasks.handOver();
    tasks.close();

    next().resume();

    assertThat(nextFakes.started).hasSize(1);
  }

  @Test
  void latest_afterHandOver_staysRunning() {
    KeptTasks tasks = first();
    tasks.start(REQUEST);
    tasks.handOver();
    tasks.cancel();

    assertThat(Objects.requireNonNull(tasks.latest()).isRunning()).isTrue();
  }

  @Test
  void resume_ofATaskThatKillsEachDaemon_givesUp() {
    first().start(REQUEST);
    int resumed = 0;
    for (int i = 0; i < 10; i++) {
      FakeTasks daemon = new FakeTasks();
      new KeptTasks(daemon, file).resume();
      resumed += daemon.started.size();
    }

    assertThat(resumed).isEqualTo(3);
    assertThat(file).doesNotExist();
  }

  @Test
  void resume_whatTheNextDaemonRefuses_isForgotten() {
    first().start(REQUEST);
    nextFakes.refusal = new IllegalArgumentException("there is no such tier");

    next().resume();

    assertThat(file).doesNotExist();
  }

  @Test
  void forget_ofAnotherSessionsTask_removesIt() {
    first().start(REQUEST);

    KeptTasks next = next();
    next.forget();
    next.resume();

    assertThat(nextFakes.started).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "\0\0\0",
        "[[[[",
        "{}",
        "{\"id\":\"0123456789abcdef\",\"resumes\":0}",
        "{\"id\":\"../../x\",\"resumes\":0,\"request\":{\"task\":\"evict\",\"paths\":[\"a\"]}}",
        "{\"id\":\"0123456789abcdef\",\"resumes\":-5,\"request\":{\"task\":\"evict\",\"paths\":[\"a\"]}}",
        "{\"id\":\"0123456789abcdef\",\"resumes\":1,\"request\":{\"task\":\"evict\",\"paths\":[\"/a\"]}}",
        "{\"id\":\"0123456789abcdef\",\"resumes\":1,\"x\":1}"
      })
  void resume_brokenFile_isRemovedAndIgnored(String text) throws Exception {
    Files.writeString(file, text);

    next().resume();

    assertThat(nextFakes.started).isEmpty();
    assertThat(file).doesNotExist();
  }

  @Test
  void resume_directoryInstead_isIgnored() throws Exception {
    Files.createDirectories(file.resolve("x"));

    next().resume();

    assertThat(nextFakes.started).isEmpty();
  }

  @Test
  void start_fileCannotBeWritten_runsNevertheless() throws Exception {
    Files.createDirectories(file.resolve("x"));

    first().start(REQUEST);

    assertThat(fakes.started).hasSize(1);
  }

  @Test
  void start_withoutAFile_leavesNone() {
    new KeptTasks(fakes, null).start(REQUEST);

    assertThat(directory).isEmptyDirectory();
  }

  // Lists of paths.

  private TaskLists lists() {
    return new TaskLists(directory.resolve("lists"), new ScratchFiles(List.of()));
  }

  private KeptTasks withLists(FakeTasks daemon) {
    return new KeptTasks(daemon, null, lists(), file);
  }

  private TaskRequest listed(TaskLists into, String request, String... paths) throws IOException {
    try (TaskLists.Upload upload = into.begin()) {
      upload.write(ByteBuffer.wrap(bytes(request, paths)));
      return upload.end();
    }
  }

  private static byte[] bytes(String request, String... paths) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    bytes.write((request + "\n").getBytes(UTF_8));
    PathFile.Writer list = new PathFile.Writer(bytes);
    for (String path : paths) {
      list.add(FileName.of(path));
    }
    list.end();
    return bytes.toByteArray();
  }

  private String[] files() {
    return Objects.requireNonNullElse(directory.resolve("lists").toFile().list(), new String[0]);
  }

  @Test
  void resume_ofAListedTask_readsTheSameListAndRemovesTheOthers() throws Exception {
    KeptTasks tasks = withLists(fakes);
    listed(tasks.lists(), "{\"task\":\"evict\"}", "of a task that never began");
    tasks.start(listed(tasks.lists(), "{\"task\":\"evict\"}", "a", "b"));
    assertThat(files()).hasSize(2);

    withLists(nextFakes).resume();

    assertThat(nextFakes.last().paths).containsExactly(FileName.of("a"), FileName.of("b"));
    assertThat(files()).hasSize(1);
    nextFakes.last().is(FakeTasks.progress(State.ENDED, 2, 0, 0, 0));
    Await.until("the files are removed", () -> files().length == 0);
  }

  @Test
  void resume_ofAListedTaskThatWasHandedOver_readsTheSameList() throws Exception {
    KeptTasks tasks = withLists(fakes);
    tasks.start(listed(tasks.lists(), "{\"task\":\"evict\"}", "a", "b"));
    tasks.handOver();
    tasks.close();

    withLists(nextFakes).resume();

    assertThat(nextFakes.last().paths).containsExactly(FileName.of("a"), FileName.of("b"));
  }

  @Test
  void forget_ofAnotherSessionsListedTask_removesTheList() throws Exception {
    KeptTasks tasks = withLists(fakes);
    tasks.start(listed(tasks.lists(), "{\"task\":\"evict\"}", "a", "b"));

    withLists(nextFakes).forget();

    assertThat(files()).isEmpty();
  }

  @Test
  void resume_ofAListThatWasCutShort_doesNothing() throws Exception {
    KeptTasks tasks = withLists(fakes);
    tasks.start(listed(tasks.lists(), "{\"task\":\"evict\"}", "a", "b"));
    Path list = directory.resolve("lists").resolve(files()[0]);
    Files.write(list, Arrays.copyOf(Files.readAllBytes(list), (int) Files.size(list) - 1));

    withLists(nextFakes).resume();

    assertThat(nextFakes.started).isEmpty();
    assertThat(file).doesNotExist();
    assertThat(files()).isEmpty();
  }

  @Test
  void close_whileAListedTaskRuns_leavesNoList() throws Exception {
    KeptTasks tasks = withLists(fakes);
    tasks.start(listed(tasks.lists(), "{\"task\":\"evict\"}", "a"));

    tasks.close();

    assertThat(files()).isEmpty();
  }

  @Test
  void list_thatTheStateDoesNotTake_liesElsewhereAndEndsWithTheDaemon() throws Exception {
    Files.createFile(directory.resolve("lists"));
    Path elsewhere = Files.createDirectory(directory.resolve("elsewhere"));
    TaskLists lists =
        new TaskLists(directory.resolve("lists"), new ScratchFiles(List.of(elsewhere)));
    KeptTasks tasks = new KeptTasks(fakes, null, lists, file);

    tasks.start(listed(lists, "{\"task\":\"evict\"}", "a", "b"));

    assertThat(fakes.last().paths).hasSize(2);
    assertThat(elsewhere).isEmptyDirectory();
    assertThat(file).doesNotExist();
  }

  @Test
  void list_thatFitsNowhere_isAnError() throws Exception {
    TaskLists lists = new TaskLists(null, new ScratchFiles(List.of(directory.resolve("no"))));

    assertThatThrownBy(lists::begin).isInstanceOf(IOException.class);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "no line", "{}\n", "{\"task\":\"evict\",\"paths\":[\"a\"]}\n", "[\n"})
  void list_behindAWrongRequest_isRefused(String request) throws Exception {
    byte[] list = bytes("x", "a");
    byte[] bytes = (request + new String(list, ISO_8859_1).substring(2)).getBytes(ISO_8859_1);
    try (TaskLists.Upload upload = lists().begin()) {
      upload.write(ByteBuffer.wrap(bytes));

      assertThatThrownBy(upload::end).isInstanceOf(IllegalArgumentException.class);
    }
    assertThat(files()).isEmpty();
  }

  // The position of a prefetch.

  private static final TaskRequest.Prefetch ORDER =
      new TaskRequest.Prefetch(
          TaskPaths.of(List.of(FileName.of("a"), FileName.of("b"))),
          new TaskRequest.Limits(0, 0, 0),
          1 << 20,
          0);

  @Test
  void resume_ofAPrefetch_goesOnWhereItWas() throws Exception {
    first().start(ORDER);
    fakes.last().position = 1;
    Await.until("the position is kept", () -> text(file).contains("\"from\":1"));

    next().resume();

    assertThat(nextFakes.last().request()).isEqualTo(ORDER.from(1));
  }

  @Test
  void handOver_ofAPrefetch_writesWhereItIs() {
    KeptTasks tasks = first();
    tasks.start(ORDER);
    fakes.last().position = 2;
    tasks.handOver();

    assertThat(text(file)).contains("\"from\":2");
  }

  private static String text(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void start_ofAnother_givesUpTheFindingsOfTheLast() {
    KeptTasks tasks = first();
    tasks.start(REQUEST);
    FakeTasks.Task one = fakes.last();
    one.is(FakeTasks.progress(State.ENDED, 1, 0, 0, 0));
    assertThat(one.closed).isFalse();

    tasks.start(REQUEST);

    assertThat(one.closed).isTrue();
  }
}
