package io.pmfs.fs;

import static io.pmfs.source.FaultyStore.Operation.OPEN;
import static io.pmfs.source.FaultyStore.Operation.READ;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.posix.Requested;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.LeastRecentlyUsed;
import io.pmfs.stage.formats.Bundling;
import io.pmfs.tasks.Dataset;
import io.pmfs.tier.FaultyTier;
import io.pmfs.tier.FaultyTier.Fault;
import io.pmfs.tier.Hold;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Random operations on a file system whose tiers are small, lose copies, fail and corrupt data, and
 * whose source fails, answers partially, hangs, gives its files other numbers, and changes between
 * sessions. Every answer must be the one that the source alone would give, or an error that the
 * source returned to this very request. {@code -Dpmfs.model.seed=N} runs one seed, {@code
 * -Dpmfs.model.operations=N} more or fewer operations.
 */
@Timeout(120)
final class ModelTest {
  private static final int OPERATIONS = Integer.getInteger("pmfs.model.operations", 2000);
  private static final int SEEDS = 20;
  private static final int SEEDS_OF_EVERY_RUN = 4;
  private static final int BLOCK = 1 << 20;

  @TempDir private Path directory;
  private boolean isRenumbered;
  private final ExecutorService readers = Executors.newSingleThreadExecutor();

  @AfterEach
  void end() {
    readers.shutdownNow();
  }

  static LongStream seeds() {
    Long seed = Long.getLong("pmfs.model.seed");
    return seed == null ? LongStream.rangeClosed(1, SEEDS) : LongStream.of(seed);
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void operations_random_answerAsTheSource(long seed) throws Exception {
    Requested.assume(
        "large",
        seed <= SEEDS_OF_EVERY_RUN || Long.getLong("pmfs.model.seed") != null,
        "more random operations");
    Random random = new Random(seed);
    isRenumbered = seed % 3 == 2;
    long[] capacities = {
      20L * 4096 + random.nextInt(BLOCK), 300L * 4096 + random.nextInt(8 * BLOCK)
    };
    Bundling bundling = seed % 2 == 0 ? Bundling.NONE : Bundling.ALL;
    try (Dataset dataset =
        new Dataset(directory, bundling, store -> grow(store, random), capacities)) {
      for (int operation = 0; operation < OPERATIONS; operation++) {
        String at = "-Dpmfs.model.seed=%d, operation %d".formatted(seed, operation);
        try {
          step(dataset, random);
        } catch (Exception | AssertionError e) {
          throw new AssertionError(at + ": " + e, e);
        }
      }
      assertWholeTreeReadsRight(dataset);
      dataset.awaitIdle();
      for (FaultyTier tier : dataset.tiers) {
        assertThat(tier.status().usedBytes()).isBetween(0L, tier.status().capacityBytes());
      }
    }
  }

  /** Called when the source no longer fails, without a remount. */
  private static void assertWholeTreeReadsRight(Dataset dataset) throws Exception {
    dataset.faulty.clearFaults();
    for (FileName path : dataset.store.paths()) {
      look(dataset, path, inode -> List.of(new Range(0, Integer.MAX_VALUE)));
    }
  }

  private void step(Dataset dataset, Random random) throws Exception {
    if (isRenumbered && random.nextInt(50) == 0) {
      renumber(dataset.store, random);
    }
    FileName path = pick(new ArrayList<>(dataset.store.paths()), random);
    int kind = random.nextInt(1000);
    if (kind < 5) {
      remount(dataset, random);
    } else if (kind < 20) {
      dataset.tiers.forEach(tier -> breakSometimes(tier, random));
    } else if (kind < 30) {
      dataset.awaitIdle();
    } else if (kind < 45) {
      breakSometimes(dataset.faulty, random);
    } else if (kind < 60) {
      readWhileOneHangs(dataset, random);
    } else if (kind < 120) {
      FileName missing = path.resolve(FileName.of("none"));
      Errno expected = isDirectory(dataset, path) ? Errno.ENOENT : Errno.ENOTDIR;
      bearing(dataset, () -> assertMissing(dataset, missing, expected));
    } else {
      bearing(dataset, () -> look(dataset, path, inode -> ranges(inode, random)));
    }
  }

  private static void assertMissing(Dataset dataset, FileName missing, Errno expected)
      throws FsException {
    try {
      assertThat(dataset.number(missing)).as("%s", missing).isNull();
    } catch (FsException e) {
      if (e.errno() != expected) {
        throw e;
      }
    }
  }

  private interface Step {
    void run() throws Exception;
  }

  /**
   * Runs a step that may fail only with an error that the source returned to this step, not to a
   * background thread.
   */
  private static void bearing(Dataset dataset, Step step) throws Exception {
    dataset.faulty.takeInjected(thread -> true);
    try {
      step.run();
    } catch (FsException e) {
      Set<Errno> injected =
          dataset.faulty.takeInjected(thread -> !thread.matches("(fetch|store|compare)-.*"));
      // A listing never fails with ENOENT.
      Errno errno =
          e.errno() == Errno.ESTALE && injected.contains(Errno.ENOENT) ? Errno.ENOENT : e.errno();
      if (!injected.contains(errno)) {
        throw e;
      }
    }
  }

  private static void breakSometimes(FaultyStore source, Random random) {
    switch (random.nextInt(3)) {
      case 0 -> source.clearFaults();
      case 1 -> source.faults(FaultyStore.random(random.nextLong(), 20));
      default -> source.faults(FaultyStore.random(random.nextLong(), 300));
    }
  }

  /**
   * Reads a file while the source hangs: other files are answered meanwhile, this one once the
   * source continues.
   */
  private void readWhileOneHangs(Dataset dataset, Random random) throws Exception {
    List<FileName> files = paths(dataset.store, FileType.REGULAR);
    FileName held = pick(files, random);
    FileIdentity identity = dataset.store.expectedStatus(held).identity();
    dataset.faulty.clearFaults();
    look(dataset, FileName.of(""), inode -> List.of());
    dataset.number(held);
    Hold hold =
        dataset
            .faulty
            .on(OPEN, READ)
            .of(path -> dataset.store.expectedStatus(path).identity().equals(identity))
            .hold();
    List<Range> ranges = ranges(dataset.inode(held.toString()), random);
    Future<?> reader =
        readers.submit(
            () -> {
              look(dataset, held, inode -> ranges);
              return held;
            });
    Await.until("a read that hangs or is answered", () -> reader.isDone() || hold.count() > 0);
    for (int i = 0; i < 3; i++) {
      FileName other = pick(files, random);
      if (!dataset.store.expectedStatus(other).identity().equals(identity)) {
        look(dataset, other, inode -> ranges(inode, random));
      }
    }
    hold.release();
    reader.get(60, TimeUnit.SECONDS);
    dataset.faulty.clearFaults();
  }

  private record Range(int offset, int count) {}

  private static List<Range> ranges(Inode inode, Random random) {
    int size = Math.toIntExact(inode.attributes().size());
    List<Range> ranges = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      ranges.add(new Range(random.nextInt(size + 10), random.nextInt(200_000)));
    }
    return ranges;
  }

  private static boolean isDirectory(Dataset dataset, FileName path) {
    return dataset.store.expectedStatus(path).attributes().type() == FileType.DIRECTORY;
  }

  private static <T> T pick(List<T> all, Random random) {
    return all.get(random.nextInt(all.size()));
  }

  private static void look(Dataset dataset, FileName path, Function<Inode, List<Range>> reads)
      throws Exception {
    FakeStore store = dataset.store;
    Inode inode = dataset.fs.inode(dataset.number(path));
    assertThat(inode.attributes())
        .as("%s", path)
        .isEqualTo(store.expectedStatus(path).attributes());
    assertThat(text(dataset.fs.extendedAttributes(inode.number())))
        .as("%s", path)
        .isEqualTo(text(store.extendedAttributes(path)));
    switch (inode.attributes().type()) {
      case DIRECTORY -> assertThat(children(dataset, inode)).isEqualTo(children(store, path));
      case SYMBOLIC_LINK ->
          assertThat(dataset.fs.readSymbolicLink(inode.number()))
              .isEqualTo(store.expectedTarget(path));
      default -> {
        for (Range range : reads.apply(inode)) {
          assertThat(dataset.read(inode.number(), range.offset, range.count))
              .as("%s, %s", path, range)
              .isEqualTo(store.expected(path, range.offset, range.count));
        }
      }
    }
  }

  private static String text(Map<FileName, byte[]> attributes) {
    Map<String, String> text = new TreeMap<>();
    attributes.forEach((name, value) -> text.put(name.toString(), Arrays.toString(value)));
    return text.toString();
  }

  private static Map<FileName, FileType> children(Dataset dataset, Inode directory)
      throws Exception {
    Map<FileName, FileType> children = new HashMap<>();
    List<DirectoryEntry> entries = new ArrayList<>();
    dataset.fs.list(directory.number(), 0, entries::add);
    for (DirectoryEntry entry : entries) {
      FileType type = entry.type();
      if (type == FileType.UNKNOWN) {
        // Unknown when the directory was listed; a lookup requests its attributes again.
        DirectoryEntry now = dataset.fs.find(directory.number(), entry.name());
        type = now.type();
      }
      children.put(entry.name(), type);
    }
    assertThat(children).hasSameSizeAs(entries);
    return children;
  }

  private static Map<FileName, FileType> children(FakeStore store, FileName directory)
      throws Exception {
    Map<FileName, FileType> children = new HashMap<>();
    store.list(
        directory,
        names -> {
          for (FileName name : names) {
            children.put(name, store.expectedStatus(directory.resolve(name)).attributes().type());
          }
          return true;
        });
    return children;
  }

  private void remount(Dataset dataset, Random random) throws Exception {
    EvictionPolicy eviction =
        random.nextBoolean() ? EvictionPolicy.NONE : new LeastRecentlyUsed(new Random(1));
    dataset.awaitIdle();
    dataset.tiers.forEach(FaultyTier::clearFaults);
    dataset.remount(
        store -> {
          rot(random);
          int changes = random.nextInt(12);
          for (int i = 0; i < changes; i++) {
            change(store, random);
          }
          if (isRenumbered) {
            renumber(store, random);
          }
        },
        eviction);
  }

  /** Damages some copies on the disk, like power failures and bad disks. */
  private void rot(Random random) throws IOException {
    List<Path> copies;
    try (Stream<Path> all = Files.walk(directory)) {
      copies =
          all.filter(file -> file.toString().contains("/copies/") && Files.isRegularFile(file))
              .sorted()
              .toList();
    }
    for (Path copy : copies) {
      byte[] content = random.nextInt(10) == 0 ? Files.readAllBytes(copy) : new byte[0];
      if (content.length > 0) {
        switch (random.nextInt(3)) {
          case 0 -> Files.delete(copy);
          case 1 -> Files.write(copy, new byte[random.nextInt(content.length)]);
          default -> {
            content[random.nextInt(content.length)] ^= (byte) (1 + random.nextInt(255));
            Files.write(copy, content);
          }
        }
      }
    }
  }

  private static void breakSometimes(FaultyTier tier, Random random) {
    int mode = random.nextInt(3);
    if (mode == 0) {
      tier.clearFaults();
      return;
    }
    // Used by several threads in an order that the seed does not determine: answers must not depend
    // on it.
    Random faults = new Random(random.nextLong());
    tier.faults(
        (point, number) -> {
          int chance = faults.nextInt(1000);
          if (mode == 2 && chance < 5) {
            return Fault.FAIL;
          }
          return switch (point) {
            // Loses a copy or truncates it. A verified copy is trusted for the session, so its
            // bytes must not change.
            case OPEN -> chance < 50 ? Fault.CORRUPT : chance < 100 ? Fault.SHORT : Fault.NONE;
            case READ -> chance < 50 ? Fault.SHORT : Fault.NONE;
            case CREATE, MOVE -> chance < 200 ? Fault.FAIL : Fault.NONE;
            case HAS, WRITE, COMMIT, CLOSE -> Fault.NONE;
          };
        });
  }

  // The source.

  private static void grow(FakeStore store, Random random) {
    for (int i = 0; i < 60; i++) {
      add(store, random);
    }
  }

  private static String name(Random random) {
    return Character.toString('a' + random.nextInt(26)) + random.nextInt(4);
  }

  private static long size(Random random) {
    return switch (random.nextInt(12)) {
      case 0 -> 0;
      case 1 -> 4095 + random.nextInt(3);
      case 2 -> BLOCK - 1 + random.nextInt(3);
      case 3 -> 2L * BLOCK + random.nextInt(50);
      default -> random.nextInt(20_000);
    };
  }

  private static List<FileName> paths(FakeStore store, FileType type) {
    return store.paths().stream()
        .filter(path -> path.size() > 0 && store.expectedStatus(path).attributes().type() == type)
        .toList();
  }

  private static FileName newPath(FakeStore store, Random random) {
    List<FileName> directories = new ArrayList<>(paths(store, FileType.DIRECTORY));
    directories.add(FileName.of(""));
    return pick(directories, random).resolve(FileName.of(name(random)));
  }

  private static void add(FakeStore store, Random random) {
    FileName path = newPath(store, random);
    if (store.paths().contains(path)) {
      return;
    }
    switch (random.nextInt(8)) {
      case 0, 1 -> store.directory(path.toString());
      case 2 -> store.symbolicLink(path.toString(), name(random));
      default -> store.file(path, random.nextInt(1000), size(random));
    }
  }

  /** Permutes the inode numbers of all files. */
  private static void renumber(FakeStore store, Random random) {
    int mask = random.nextInt(128);
    store.renumber(inode -> inode ^ mask);
  }

  private static void change(FakeStore store, Random random) {
    List<FileName> files = paths(store, FileType.REGULAR);
    List<FileName> links = paths(store, FileType.SYMBOLIC_LINK);
    List<FileName> all = new ArrayList<>(store.paths());
    int seed = random.nextInt(1000);
    if (files.isEmpty()) {
      add(store, random);
      return;
    }
    FileName file = pick(files, random);
    switch (random.nextInt(9)) {
      case 0 -> store.write(file.toString(), seed, size(random));
      case 1 -> store.file(file, seed, store.expectedStatus(file).attributes().size());
      case 2 -> remove(store, pick(all, random), random);
      case 3 -> rename(store, pick(all, random), newPath(store, random));
      case 4 -> {
        FileName path = newPath(store, random);
        if (!store.paths().contains(path)) {
          store.hardLink(path.toString(), file.toString());
        }
      }
      case 5 -> {
        if (!links.isEmpty()) {
          store.relink(pick(links, random).toString(), name(random));
        }
      }
      case 6 -> store.xattr(pick(all, random).toString(), "user.x", new byte[] {(byte) seed});
      default -> add(store, random);
    }
  }

  private static void remove(FakeStore store, FileName path, Random random) {
    if (path.size() > 0 && (random.nextInt(3) == 0 || !below(store, path).findAny().isPresent())) {
      List<FileName> subtree = new ArrayList<>(below(store, path).toList());
      for (int i = subtree.size() - 1; i >= 0; i--) {
        store.remove(subtree.get(i).toString());
      }
      store.remove(path.toString());
    }
  }

  private static Stream<FileName> below(FakeStore store, FileName path) {
    return store.paths().stream().filter(other -> other.toString().startsWith(path + "/"));
  }

  private static void rename(FakeStore store, FileName from, FileName to) {
    boolean intoItself = (to + "/").startsWith(from + "/");
    if (from.size() > 0 && !intoItself && !store.paths().contains(to)) {
      store.rename(from.toString(), to.toString());
    }
  }
}
