package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.it.Dataset.Item;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Readers of all kinds at once, on a cold mount and on a warm one. */
final class ConcurrencyIT {
  private static final int READERS = 8;

  @ParameterizedTest
  @EnumSource
  void readers_ofAllKindsAtOnce_eachGetTheRightBytes(BridgeMode mode) throws Exception {
    mode.runsInEveryRunIf(BridgeMode.PASSTHROUGH);
    Machine.requireFuse();
    long seed = System.nanoTime();
    System.out.println("ConcurrencyIT seed " + seed);
    try (Installation pmfs = new Installation()) {
      Dataset dataset = Dataset.create(pmfs.directory("source"), sizes(new Random(seed)));
      try (MountedPmfs mount = mode.mount(pmfs, Duration.ofMinutes(2), dataset.root())) {
        readAtOnce(dataset, mount.mountpoint(), seed);
        Status cold = mount.awaitCopies(dataset.items().size());
        // A reader and the staging thread may both fetch a byte, no more: the kernel keeps it then.
        assertThat(cold.number("sourceOperations.bytes"))
            .isBetween(dataset.bytes(), 2 * dataset.bytes());
        if (Machine.isRoot()) {
          Machine.forget(mount.mountpoint());
        }
        readAtOnce(dataset, mount.mountpoint(), seed + 1);
        Status warm = mount.status();
        assertThat(warm.sourceRequests()).as("%s", warm).isEqualTo(cold.sourceRequests());
        assertThat(warm.number("reads.errors")).isZero();
      }
    }
  }

  private static int[] sizes(Random random) {
    int[] sizes = new int[300];
    for (int i = 0; i < sizes.length; i++) {
      sizes[i] = i % 50 == 0 ? 8_000_000 + random.nextInt(1000) : 1 + random.nextInt(200_000);
    }
    return sizes;
  }

  private static void readAtOnce(Dataset dataset, Path directory, long seed) throws Exception {
    List<BiConsumer<Item, Path>> kinds =
        List.of(
            (item, file) -> Dataset.assertEqualBelow(directory, item),
            ConcurrencyIT::readMapped,
            ConcurrencyIT::readPieces,
            ConcurrencyIT::readByProcess);
    CountDownLatch start = new CountDownLatch(1);
    ExecutorService threads = Executors.newFixedThreadPool(READERS);
    try {
      List<Future<?>> readers = new ArrayList<>();
      for (int i = 0; i < READERS; i++) {
        List<Item> items = new ArrayList<>(dataset.items());
        Collections.shuffle(items, new Random(seed + i));
        BiConsumer<Item, Path> kind = kinds.get(i % kinds.size());
        readers.add(
            threads.submit(
                () -> {
                  start.await();
                  for (Item item : items) {
                    kind.accept(item, directory.resolve(item.name()));
                  }
                  return null;
                }));
      }
      start.countDown();
      for (Future<?> reader : readers) {
        reader.get(90, TimeUnit.SECONDS);
      }
    } finally {
      threads.shutdownNow();
    }
  }

  private static void readMapped(Item item, Path file) {
    assertThat(Posix.mmap(file.toString(), item.size(), 0))
        .as("mapping of %s", item)
        .matches(got -> Arrays.equals(got, item.content()));
  }

  private static void readPieces(Item item, Path file) {
    byte[] content = item.content();
    Random random = new Random(item.size());
    for (int i = 0; i < 10; i++) {
      int offset = random.nextInt(item.size());
      int size = 1 + random.nextInt(50_000);
      byte[] expected = Arrays.copyOfRange(content, offset, Math.min(offset + size, item.size()));
      assertThat(Posix.pread(file.toString(), size, offset))
          .as("%d bytes at %d of %s", size, offset, item)
          .matches(got -> Arrays.equals(got, expected));
    }
  }

  private static void readByProcess(Item item, Path file) {
    if (item.size() % 4 == 0) {
      Command dd =
          Command.run("dd", "if=" + file, "bs=" + (4096 + item.size() % 997), "status=none");
      byte[] got = dd.expect(0).out().getBytes(java.nio.charset.StandardCharsets.ISO_8859_1);
      assertThat(got).as("dd of %s", item).matches(g -> Arrays.equals(g, item.content()));
    }
  }
}
