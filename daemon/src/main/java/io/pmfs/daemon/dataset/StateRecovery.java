package io.pmfs.daemon.dataset;

import io.pmfs.metadata.Namespace;
import io.pmfs.posix.DaemonThread;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A thread that retries, with backoff, to resume recording the namespace after its disk failed. */
final class StateRecovery implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(StateRecovery.class);
  private static final Duration FIRST = Duration.ofSeconds(1);
  private static final Duration PATIENCE = Duration.ofSeconds(10);
  private static final Duration LONGEST = Duration.ofSeconds(30);

  private final Namespace namespace;
  private final Thread thread;

  private StateRecovery(Namespace namespace) {
    this.namespace = namespace;
    this.thread = DaemonThread.lasting("state", this::run);
  }

  static StateRecovery start(Namespace namespace) {
    StateRecovery recovery = new StateRecovery(namespace);
    recovery.thread.start();
    return recovery;
  }

  private void run() {
    Duration pause = FIRST;
    while (true) {
      try {
        Thread.sleep(pause.toMillis());
      } catch (InterruptedException e) {
        return;
      }
      if (namespace.failure() == null) {
        pause = FIRST;
        continue;
      }
      try {
        namespace.recover();
      } catch (RuntimeException e) {
        log.warn("cannot reopen the state", e);
      }
      pause = pause.multipliedBy(2).compareTo(LONGEST) > 0 ? LONGEST : pause.multipliedBy(2);
    }
  }

  /** Waits until the thread has ended, but not for a hanging disk. */
  @Override
  public void close() {
    thread.interrupt();
    try {
      thread.join(PATIENCE.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
