package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.it.Dataset.Item;
import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Many readers, large directories, and copies that go away under open files. */
final class BridgeConcurrencyIT {
  private static final Duration LIFETIME = Duration.ofMinutes(3);
  private static final int ENTRIES = 100_000;

  private final long seed = System.nanoTime();
  @Installed private Installation pmfs;

  @BeforeEach
  void printSeed() {
    System.out.println("BridgeConcurrencyIT seed " + seed);
  }

  private Dataset dataset(int count, int maxSize) {
    Random random = new Random(seed);
    int[] sizes = random.ints(count, 1, maxSize).toArray();
    return Dataset.create(pmfs.directory("source"), sizes);
  }

  @ParameterizedTest
  @CsvSource({"PAGE_CACHE, 16", "PAGE_CACHE, 64", "PASSTHROUGH, 16", "PASSTHROUGH, 64", "JNR, 16"})
  void readers_inEachEpoch_getTheRightBytes(BridgeMode mode, int readers) throws Exception {
    Requested.assume("cases", mode == BridgeMode.JNR || readers == 64, "");
    Dataset dataset = dataset(150, 150_000);
    try (MountedPmfs mount = mode.mount(pmfs, LIFETIME, dataset.root())) {
      int[] readersOfEpochs = {readers, readers, 4, 2, 1};
      for (int epoch = 0; epoch < readersOfEpochs.length; epoch++) {
        long epochSeed = seed + 1000L * epoch;
        inThreads(
            readersOfEpochs[epoch],
            reader -> readAll(dataset, mount, new Random(epochSeed + reader)));
        mount.awaitCopies(dataset.items().size());
        if (Machine.isRoot()) {
          Machine.forget(mount.mountpoint());
        }
      }
      assertThat(mount.status().number("reads.errors")).isZero();
    }
  }

  private static void readAll(Dataset dataset, MountedPmfs mount, Random random) {
    List<Item> items = new ArrayList<>(dataset.items());
    Collections.shuffle(items, random);
    for (Item item : items) {
      Dataset.assertEqualBelow(mount.mountpoint(), item);
    }
  }

  private interface Reader {
    void read(int index) throws Exception;
  }

  private static void inThreads(int count, Reader reader) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(count);
    try {
      List<Callable<Void>> tasks = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        int index = i;
        tasks.add(
            () -> {
              reader.read(index);
              return null;
            });
      }
      for (Future<Void> done : threads.invokeAll(tasks, 120, TimeUnit.SECONDS)) {
        done.get();
      }
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  @OnRequest(value = "large", what = "a directory of 100,000 names")
  void largeDirectory_listedTwiceWhileItIsRead_isWhole() throws Exception {
    Path source = pmfs.directory("source");
    String make = "seq -f %07g " + ENTRIES + " | xargs -n 2000 touch";
    Command.run("sh", "-c", "cd '" + source + "' && " + make).expect(0);
    Set<String> expected = names(source);
    assertThat(expected).hasSize(ENTRIES);
    try (MountedPmfs mount = BridgeMode.PAGE_CACHE.mount(pmfs, LIFETIME, source)) {
      inThreads(
          4,
          reader -> {
            if (reader < 2) {
              for (int round = 0; round < 2; round++) {
                assertThat(names(mount.mountpoint()).equals(expected))
                    .as("listing %d of reader %d is whole", round, reader)
                    .isTrue();
              }
            } else {
              Random random = new Random(seed + reader);
              for (int i = 0; i < 2000; i++) {
                String name = String.format("%07d", 1 + random.nextInt(ENTRIES));
                assertThat(Files.size(mount.mountpoint().resolve(name))).isZero();
              }
            }
          });
    }
  }

  private static Set<String> names(Path directory) throws Exception {
    try (Stream<Path> files = Files.list(directory)) {
      List<String> names = files.map(file -> file.getFileName().toString()).toList();
      assertThat(names).doesNotHaveDuplicates();
      return new HashSet<>(names);
    }
  }

  /** Each open evicts: a tier for a few of the files, and readers that keep theirs open. */
  @ParameterizedTest
  @CsvSource({"PASSTHROUGH", "PAGE_CACHE"})
  void copies_evictedUnderOpenFiles_contentStaysRight(BridgeMode mode) throws Exception {
    mode.runsInEveryRunIf(BridgeMode.PAGE_CACHE);
    Dataset dataset = dataset(60, 400_000);
    try (MountedPmfs mount =
        mode.mount(
            pmfs,
            LIFETIME,
            dataset.root(),
            "--tier",
            "ssd:" + pmfs.tier() + ":4M",
            "--eviction",
            "lru")) {
      inThreads(8, reader -> openAndReopen(dataset, mount, new Random(seed + reader)));
      Status status = mount.awaitStagingIdle();
      assertThat(status.number("staging.evicted")).as("%s", status).isPositive();
      assertThat(status.number("reads.errors")).as("%s", status).isZero();
    }
  }

  private static void openAndReopen(Dataset dataset, MountedPmfs mount, Random random) {
    List<Item> items = dataset.items();
    for (int round = 0; round < 60; round++) {
      Item kept = items.get(random.nextInt(items.size()));
      try (Mapping first = new Mapping(mount.path(kept.name()), kept.size())) {
        for (int i = 0; i < 5; i++) {
          Dataset.assertEqualBelow(mount.mountpoint(), items.get(random.nextInt(items.size())));
        }
        try (Mapping second = new Mapping(mount.path(kept.name()), kept.size())) {
          byte[] content = kept.content();
          assertThat(first.readEquals(content)).as("first open of %s", kept).isTrue();
          assertThat(first.mappedEquals(content)).as("first mapping of %s", kept).isTrue();
          assertThat(second.readEquals(content)).as("second open of %s", kept).isTrue();
          assertThat(second.mappedEquals(content)).as("second mapping of %s", kept).isTrue();
        }
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"PASSTHROUGH", "PAGE_CACHE"})
  void copies_deletedUnderOpenFiles_contentStaysRight(BridgeMode mode) {
    mode.runsInEveryRunIf(BridgeMode.PASSTHROUGH);
    Machine.requireRoot();
    Dataset dataset = dataset(20, 400_000);
    try (MountedPmfs mount = mode.mount(pmfs, LIFETIME, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(dataset.items().size());
      List<Mapping> mappings = new ArrayList<>();
      try {
        for (Item item : dataset.items()) {
          mappings.add(new Mapping(mount.path(item.name()), item.size()));
        }
        pmfs.copies().stream()
            .filter(file -> file.toString().contains("/copies/"))
            .forEach(Faults::delete);
        Machine.forget(mount.mountpoint());
        for (int i = 0; i < mappings.size(); i++) {
          Item item = dataset.items().get(i);
          assertThat(mappings.get(i).readEquals(item.content())).as("%s", item).isTrue();
          assertThat(mappings.get(i).mappedEquals(item.content())).as("%s", item).isTrue();
        }
        dataset.assertEqualBelow(mount.mountpoint());
      } finally {
        mappings.forEach(Mapping::close);
      }
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().number("reads.errors")).isZero();
    }
  }
}
