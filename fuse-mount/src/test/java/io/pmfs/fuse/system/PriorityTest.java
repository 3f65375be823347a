package io.pmfs.fuse.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

final class PriorityTest {
  private static int niceness() {
    return LibC.INSTANCE.getpriority(0, 0);
  }

  @Test
  void lower_inAThread_isOfThatThreadAlone() throws Exception {
    int before = niceness();
    FutureTask<Integer> low =
        new FutureTask<>(
            () -> {
              Priority.lower();
              return niceness();
            });
    Thread thread = new Thread(low);
    thread.start();
    assertThat(low.get()).isEqualTo(Math.max(before, 10));
    assertThat(niceness()).isEqualTo(before);
    thread.join();
  }
}
