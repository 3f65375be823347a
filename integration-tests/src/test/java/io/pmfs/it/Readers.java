package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Threads that read files of a mount in random order and compare every byte, until closed. Some
 * files each of them holds open and mapped for all that time, and reads and opens again now and
 * then.
 */
final class Readers implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final Duration FORGETTING = Duration.ofMillis(200);

  /** Between two reads: these are there to be disturbed, and not to take all processors. */
  private static final Duration PAUSE = Duration.ofMillis(1);

  private final Dataset dataset;
  private final List<Path> mountpoints;
  private final List<Dataset.Item> held;
  private final List<Thread> threads = new ArrayList<>();
  private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
  private final AtomicLong reads = new AtomicLong();
  private final AtomicLong longestNanos = new AtomicLong();
  private volatile boolean stopping;

  Readers(Dataset dataset, Path mountpoint, int count, List<Dataset.Item> held) {
    this(dataset, List.of(mountpoint), count, held);
  }

  /** Of several mounts, in turn. */
  Readers(Dataset dataset, List<Path> mountpoints, int count, List<Dataset.Item> held) {
    this.dataset = dataset;
    this.mountpoints = mountpoints;
    this.held = held;
    for (int i = 0; i < count; i++) {
      int index = i;
      Thread thread = new Thread(() -> run(index), "reader-" + i);
      threads.add(thread);
      thread.start();
    }
  }

  private void run(int index) {
    List<Mapping> open = new ArrayList<>();
    Path mountpoint = mountpoints.get(index % mountpoints.size());
    try {
      held.forEach(item -> open.add(map(mountpoint, item)));
      readOn(index, mountpoint, open);
    } catch (Throwable e) {
      failures.add(e);
    } finally {
      open.forEach(Mapping::close);
    }
  }

  private void readOn(int index, Path mountpoint, List<Mapping> open) throws InterruptedException {
    Random random = new Random(index);
    long forgotten = System.nanoTime();
    while (!stopping) {
      long began = System.nanoTime();
      if (open.isEmpty() || random.nextBoolean()) {
        Dataset.Item item = any(dataset.items(), random);
        Dataset.assertEqualBelow(mountpoint, item);
        // Else the kernel soon answers everything from memory.
        Posix.check(Posix.forgetData(mountpoint + "/" + item.name()));
      } else if (random.nextInt(4) > 0) {
        int which = random.nextInt(open.size());
        if (random.nextBoolean()) {
          open.get(which).remap();
        }
        open.get(which).assertEquals(held.get(which));
      } else {
        Dataset.Item item = any(held, random);
        try (Mapping again = map(mountpoint, item)) {
          again.assertEquals(item);
        }
      }
      long ended = System.nanoTime();
      longestNanos.accumulateAndGet(ended - began, Math::max);
      reads.incrementAndGet();
      if (index == 0 && ended - forgotten > FORGETTING.toNanos()) {
        Machine.dropNames();
        forgotten = System.nanoTime();
      }
      Thread.sleep(PAUSE.toMillis());
    }
  }

  private static Mapping map(Path mountpoint, Dataset.Item item) {
    return new Mapping(mountpoint + "/" + item.name(), item.size());
  }

  private static Dataset.Item any(List<Dataset.Item> items, Random random) {
    return items.get(random.nextInt(items.size()));
  }

  void awaitMore(int count) {
    long goal = reads.get() + count;
    Await.until("reads", PATIENCE, () -> reads.get() >= goal || !failures.isEmpty());
  }

  void assertNoFailures() {
    assertThat(failures).isEmpty();
  }

  long reads() {
    return reads.get();
  }

  int failures() {
    return failures.size();
  }

  /** How long the slowest read took, from open to close. */
  Duration longest() {
    return Duration.ofNanos(longestNanos.get());
  }

  @Override
  public void close() {
    stopping = true;
    for (Thread thread : threads) {
      Await.until("reader ended", PATIENCE, () -> !thread.isAlive());
    }
  }
}
