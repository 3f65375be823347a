package io.pmfs.cli;

import io.pmfs.packing.PackProgress;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Shows how far a pack is, a line every few seconds, and passes on the wish that it ends. */
final class PackDisplay implements AutoCloseable {
  private static final Duration PAUSE = Duration.ofSeconds(5);

  /** How long the end of the process waits for files to be put away. */
  private static final Duration END = Duration.ofSeconds(30);

  private final Invocation invocation;
  private final PackProgress progress;
  private final Instant start;
  private final CountDownLatch ended = new CountDownLatch(1);

  private PackDisplay(Invocation invocation, PackProgress progress) {
    this.invocation = invocation;
    this.progress = progress;
    this.start = invocation.clock().instant();
  }

  static PackDisplay start(Invocation invocation, PackProgress progress) {
    PackDisplay display = new PackDisplay(invocation, progress);
    invocation.atShutdown().accept(display::cancel);
    Thread thread = new Thread(display::showAll, "progress");
    thread.setDaemon(true);
    thread.start();
    return display;
  }

  private boolean cancel() {
    progress.cancel();
    return await(END);
  }

  private boolean await(Duration time) {
    try {
      return ended.await(time.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private void showAll() {
    while (!await(PAUSE) && !Thread.currentThread().isInterrupted()) {
      invocation.say(
          "%s: %,d of %,d files, %s of %s"
              .formatted(
                  progress.phase().word(),
                  progress.files(),
                  progress.totalFiles(),
                  ByteSize.format(progress.bytes()),
                  ByteSize.format(progress.totalBytes())));
    }
  }

  Duration elapsed() {
    return Duration.between(start, invocation.clock().instant());
  }

  @Override
  public void close() {
    ended.countDown();
  }
}
