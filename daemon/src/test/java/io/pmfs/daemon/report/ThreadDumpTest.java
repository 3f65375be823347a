package io.pmfs.daemon.report;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class ThreadDumpTest {
  @Test
  void now_always_hasThisThread() {
    assertThat(ThreadDump.now())
        .contains("\"" + Thread.currentThread().getName() + "\"")
        .contains("at io.pmfs.daemon.report.ThreadDumpTest.now_always_hasThisThread")
        .contains("deadlocked: none");
  }
}
