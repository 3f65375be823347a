package io.pmfs.tasks;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.tasks.TaskProgress.State;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class RunningTaskTest {
  private RunningTask task =
      new RunningTask(
          new TaskRequest.Check(TaskPaths.of(List.of(FileName.of(""))), false, false),
          new ScratchFiles(List.of(Path.of(System.getProperty("java.io.tmpdir")))),
          () -> {});

  private TaskProgress run(RunningTask.Work work) throws InterruptedException {
    task.start(work);
    assertThat(task.await(Duration.ofSeconds(30))).isTrue();
    return task.progress();
  }

  @Test
  void findings_beyondTheLimit_areCountedAndNotKept() throws Exception {
    FileName path = FileName.of("p");
    TaskProgress progress =
        run(
            t -> {
              for (int i = 0; i < Findings.MOST + 10; i++) {
                t.report(path, TaskFinding.Kind.MISSING, "");
              }
            });

    assertThat(progress.failed()).isEqualTo(Findings.MOST + 10L);
    assertThat(task.findings(0, Integer.MAX_VALUE)).hasSize(Findings.MOST);
    assertThat(progress.isComplete()).isFalse();
  }

  @Test
  void work_thatBreaksOff_failsTheTaskWithItsReason() throws Exception {
    TaskProgress progress =
        run(
            t ->
                t.join(
                    t.startThreads(
                        2,
                        "t",
                        () -> {
                          throw new IllegalStateException("the state is damaged");
                        })));

    assertThat(progress.state()).isEqualTo(State.FAILED);
    assertThat(progress.reason()).isEqualTo("the state is damaged");
  }

  @Test
  void cancel_whileAThreadHangs_isOverAllTheSame() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    task.whenCancelled(calls::incrementAndGet);
    task.start(RunningTaskTest::hang);
    assertThat(task.await(Duration.ofMillis(1))).isFalse();
    task.cancel();
    task.cancel();

    assertThat(task.await(Duration.ofSeconds(30))).isTrue();
    assertThat(task.progress().state()).isEqualTo(State.CANCELLED);
    assertThat(calls).hasValue(1);
  }

  private static void hang(RunningTask task) throws InterruptedException {
    new CountDownLatch(1).await();
  }

  @Test
  void cancel_beforeAllIsCounted_leavesTheTotalsOpen() throws Exception {
    TaskProgress counted =
        run(
            t -> {
              t.totalsAreFinal();
              t.cancel();
              t.totalsAreFinal();
            });
    assertThat(counted.totalsAreFinal()).isTrue();

    task = new RunningTask(task.request(), new ScratchFiles(List.of()), () -> {});
    TaskProgress cancelled =
        run(
            t -> {
              t.cancel();
              t.totalsAreFinal();
            });
    assertThat(cancelled.state()).isEqualTo(State.CANCELLED);
    assertThat(cancelled.totalsAreFinal()).isFalse();
  }

  @Test
  void cancel_afterTheEnd_changesNothing() throws Exception {
    run(t -> {});
    task.cancel();

    assertThat(task.progress().state()).isEqualTo(State.ENDED);
  }
}
