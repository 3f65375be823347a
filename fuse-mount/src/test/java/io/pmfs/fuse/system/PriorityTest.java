package io.pmfs.fuse.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

final class PriorityTest {
  private static final int SCHED_OTHER = 0;
  private static final int SCHED_BATCH = 3;
  private static final int SCHED_IDLE = 5;

  private static int niceness() {
    return LibC.INSTANCE.getpriority(0, 0);
  }

  private static int policy() {
    return LibC.INSTANCE.sched_getscheduler(0);
  }

  private static List<Integer> inAThread(Callable<List<Integer>> work) throws Exception {
    FutureTask<List<Integer>> result = new FutureTask<>(work);
    Thread thread = new Thread(result);
    thread.start();
    thread.join();
    return result.get();
  }

  @Test
  void lower_inAThread_isOfThatThreadAlone() throws Exception {
    int before = niceness();
    List<Integer> low =
        inAThread(
            () -> {
              Priority.lower();
              return List.of(niceness(), policy());
            });
    assertThat(low).containsExactly(Math.max(before, 10), SCHED_BATCH);
    assertThat(niceness()).isEqualTo(before);
    assertThat(policy()).isEqualTo(SCHED_OTHER);
  }

  @Test
  void lower_inAThreadThatIsIdleOnly_keepsThat() throws Exception {
    List<Integer> low =
        inAThread(
            () -> {
              LibC.INSTANCE.sched_setscheduler(0, SCHED_IDLE, new int[1]);
              Priority.lower();
              return List.of(policy());
            });
    assertThat(low).containsExactly(SCHED_IDLE);
  }
}
