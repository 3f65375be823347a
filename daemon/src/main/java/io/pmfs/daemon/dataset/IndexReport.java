package io.pmfs.daemon.dataset;

import io.pmfs.machine.ByteSize;
import io.pmfs.shards.IndexProgress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reports the progress of indexing shards every few seconds, to the log and the waiting user. */
final class IndexReport implements Consumer<IndexProgress> {
  private static final Logger log = LoggerFactory.getLogger(IndexReport.class);
  private static final long INTERVAL_NANOS = Duration.ofSeconds(5).toNanos();

  private final Path source;
  private final Consumer<String> notice;
  private final AtomicLong next = new AtomicLong(System.nanoTime() + INTERVAL_NANOS);

  IndexReport(Path source, Consumer<String> notice) {
    this.source = source;
    this.notice = notice;
  }

  @Override
  public void accept(IndexProgress progress) {
    long due = next.get();
    long now = System.nanoTime();
    if (now - due < 0 || !next.compareAndSet(due, now + INTERVAL_NANOS)) {
      return;
    }
    String line =
        "%s: indexing tar files: %d of %d, %s of %s, %d members"
            .formatted(
                source,
                progress.shards(),
                progress.totalShards(),
                ByteSize.format(progress.bytes()),
                ByteSize.format(progress.totalBytes()),
                progress.members());
    log.info("{}", line);
    notice.accept(line);
  }
}
