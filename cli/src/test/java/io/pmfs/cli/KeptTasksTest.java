package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.fs.TaskProgress.State;
import io.pmfs.fs.TaskRequest;
import io.pmfs.metadata.FileName;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class KeptTasksTest {
  private static final TaskRequest REQUEST =
      new TaskRequest.Evict(List.of(FileName.of("a"), FileName.ofLatin1("\u00ff")));

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
    await(() -> !Files.exists(file));

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

  private static void await(BooleanSupplier condition) {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as("deadline").isLessThan(deadline);
      Thread.onSpinWait();
    }
  }
}
