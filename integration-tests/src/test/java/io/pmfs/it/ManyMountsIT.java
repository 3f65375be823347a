package io.pmfs.it;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Many datasets at several mount points each, made in any order and several at once, with the
 * copies of all in one directory.
 *
 * <p>The cache of the node keeps all within one capacity. Without it, what the daemons of several
 * datasets respect together is the space that {@code --keep-free} leaves on the disk. The capacity
 * of a tier is one daemon's then: each may fill it with its own copies. And a daemon does not know
 * what the others are writing at the moment, so that all together may exceed their room by the
 * copies in progress.
 */
@OnRequest(value = "large", what = "64 mount points of 16 datasets")
final class ManyMountsIT {
  private static final Duration PATIENCE = Duration.ofMinutes(2);
  private static final int DATASETS = 16;
  private static final int PLACES = 4;
  private static final int FILES = 20;
  private static final int FILE_BYTES = 50_000;
  private static final int REPEATS = 200;
  private static final int AT_ONCE = 4;

  private static final long MIB = 1 << 20;
  private static final long DISK_BYTES = 64 * MIB;

  /** Half of what the datasets take. */
  private static final long ROOM_BYTES = DATASETS * FILES * FILE_BYTES / 2;

  /** Copies that a daemon makes at the same time. */
  private static final int COPIES_AT_ONCE = 4;

  @Installed(byRoot = true)
  private Installation pmfs;

  private final List<Dataset> datasets = new ArrayList<>();
  private @Nullable Process cache;

  private Path tier() {
    return pmfs.scratch().root().resolve("disk");
  }

  private Path place(int dataset, int number) {
    return pmfs.directory("d" + dataset + "-" + number);
  }

  private Path socket() {
    return pmfs.directory("cache-run").resolve("socket");
  }

  private void serveCache() {
    cache =
        pmfs.start(
            ProcessBuilder.Redirect.DISCARD,
            "node-cache",
            "--socket",
            socket().toString(),
            "--tier",
            "ssd:" + tier() + ":" + ROOM_BYTES,
            "--source-filesystem",
            pmfs.scratch().root().toString(),
            "--evict-after",
            "0s");
    Await.until("the cache answers", PATIENCE, () -> cacheStatus().exit() == 0);
  }

  private Command cacheStatus() {
    return pmfs.run("node-cache", "--json", "--status", socket().toString());
  }

  @AfterEach
  void endCache() throws InterruptedException {
    if (cache != null) {
      cache.destroyForcibly().waitFor();
    }
  }

  private Command mount(int dataset, int number) {
    List<String> options = new ArrayList<>();
    if (cache == null) {
      options.addAll(List.of("--tier", "ssd:" + tier()));
      options.addAll(List.of("--keep-free", Long.toString(DISK_BYTES - ROOM_BYTES)));
    } else {
      options.addAll(List.of("--node-cache", socket().toString()));
    }
    options.addAll(List.of("--state-dir", pmfs.directory("state").toString()));
    Path source = datasets.get(dataset).root();
    String[] given = options.toArray(String[]::new);
    return pmfs.run(pmfs.mountArguments(source, place(dataset, number), given)).expect(0);
  }

  /** In any order, several at once: also of one dataset, of which only one starts a daemon. */
  private void mountAll() throws Exception {
    long seed = System.nanoTime();
    System.out.println("order of the mounts: seed " + seed);
    List<Integer> order = new ArrayList<>(IntStream.range(0, DATASETS * PLACES).boxed().toList());
    Collections.shuffle(order, new Random(seed));
    ExecutorService threads = Executors.newFixedThreadPool(AT_ONCE);
    try {
      List<CompletableFuture<Boolean>> mounts =
          order.stream()
              .map(
                  i ->
                      CompletableFuture.supplyAsync(
                          () -> mount(i / PLACES, i % PLACES).out().contains("shares"), threads))
              .toList();
      int sharing = 0;
      for (CompletableFuture<Boolean> mount : mounts) {
        sharing += mount.get() ? 1 : 0;
      }
      assertThat(sharing).isEqualTo(DATASETS * (PLACES - 1));
    } finally {
      threads.shutdown();
    }
  }

  private List<Path> places() {
    return IntStream.range(0, DATASETS * PLACES)
        .mapToObj(i -> place(i / PLACES, i % PLACES))
        .toList();
  }

  /** Processes of this installation, by the environment that all of them inherit. */
  private List<Long> processes() {
    String mark = "PMFS_RUNTIME_DIR=" + pmfs.scratch().root().resolve("run");
    return ProcessHandle.allProcesses()
        .map(ProcessHandle::pid)
        .filter(pid -> read("/proc/" + pid + "/environ").contains(mark))
        .toList();
  }

  private List<Long> daemons() {
    return processes().stream()
        .filter(
            pid -> read("/proc/" + pid + "/cmdline").matches("(?s).*io.pmfs.cli.Main\\W+mount.*"))
        .toList();
  }

  /** Empty if there is no such process any more. */
  private static String read(String path) {
    try {
      return Files.readString(Path.of(path), ISO_8859_1);
    } catch (IOException e) {
      return "";
    }
  }

  private static int descriptors(long process) {
    return names(Path.of("/proc/" + process + "/fd")).size();
  }

  private static List<String> names(Path directory) {
    try (Stream<Path> files = Files.list(directory)) {
      return files.map(file -> file.getFileName().toString()).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void assertRoomKept() throws IOException {
    long used = DISK_BYTES - Files.getFileStore(tier()).getUsableSpace();
    long inProgress = cache == null ? (long) DATASETS * COPIES_AT_ONCE * FILE_BYTES : 0;
    assertThat(used).isBetween(ROOM_BYTES / 2, ROOM_BYTES + inProgress);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void mounts_ofManyDatasets_shareByDatasetAndLeaveNothing(boolean withCache) throws Exception {
    pmfs.scratch().tmpfs("disk", "mode=0700,size=" + DISK_BYTES);
    if (withCache) {
      serveCache();
    }
    for (int i = 0; i < DATASETS; i++) {
      int[] sizes = Dataset.sizes(FILES, FILE_BYTES - i); // contents follow from the size
      datasets.add(Dataset.create(pmfs.directory("source" + i), sizes));
    }
    mountAll();
    for (Path place : places()) {
      datasets.get(places().indexOf(place) / PLACES).assertEqualBelow(place);
    }
    List<Long> daemons = daemons();
    assertThat(daemons).hasSize(DATASETS);
    assertRoomKept();

    AtomicBoolean ends = new AtomicBoolean();
    CompletableFuture<Integer> reader = CompletableFuture.supplyAsync(() -> readAll(ends));
    Dataset first = datasets.get(0);
    List<Path> others = List.of(place(0, 0), place(0, 1), place(0, 2));
    try (Readers readers = new Readers(first, others, PLACES - 1, first.items().subList(0, 3))) {
      Command asked = pmfs.run("status", "--json", others.get(0).toString()).expect(0);
      long daemon = Status.parse(asked.out()).number("pid");
      int before = 0;
      for (int i = 0; i < REPEATS; i++) {
        umount(place(0, PLACES - 1), i % 2 == 0);
        assertThat(mount(0, PLACES - 1).out()).contains("shares the daemon of ");
        Dataset.assertEqualBelow(place(0, PLACES - 1), first.items().get(i % FILES));
        before = i == REPEATS / 2 ? descriptors(daemon) : before;
      }
      readers.assertNoFailures();
      assertThat(readers.reads()).isGreaterThan(REPEATS);
      // Not each mount leaves one. The daemon's threads open some when they are first needed.
      assertThat(descriptors(daemon)).isLessThan(before + REPEATS / 4);
    } finally {
      ends.set(true);
    }
    assertThat(reader.get()).as("epochs of all other mount points").isPositive();
    assertRoomKept();
    assertThat(daemons()).containsExactlyInAnyOrderElementsOf(daemons);

    List<Path> all = new ArrayList<>(places());
    Collections.shuffle(all, new Random(1));
    for (int i = 0; i < all.size(); i++) {
      umount(all.get(i), i % 2 == 0);
    }
    if (withCache) {
      assertThat(Status.parse(cacheStatus().expect(0).out()).number("connections")).isZero();
      endCache();
    }
    Await.until(() -> "processes left: " + processes(), PATIENCE, () -> processes().isEmpty());
    assertThat(Mounts.below(pmfs.scratch().root())).containsExactly(tier().toString());
    assertThat(names(pmfs.scratch().root().resolve("run")))
        .noneMatch(name -> name.matches(".*(\\.json|\\.sock|\\.holder|\\.new|\\.kept)"));
  }

  /** Compares all that is mounted all the time, again and again; how often. */
  private int readAll(AtomicBoolean ends) {
    int epochs = 0;
    for (; !ends.get(); epochs++) {
      for (int i = PLACES; i < DATASETS * PLACES && !ends.get(); i++) {
        datasets.get(i / PLACES).assertEqualBelow(place(i / PLACES, i % PLACES));
      }
    }
    return epochs;
  }

  private void umount(Path place, boolean byPmfs) {
    if (byPmfs) {
      pmfs.run("umount", place.toString()).expect(0);
    } else {
      Command.run("umount", place.toString()).expect(0);
    }
    assertThat(Mounts.at(place)).isFalse();
  }
}
