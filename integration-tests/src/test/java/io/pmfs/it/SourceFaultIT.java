package io.pmfs.it;

import static io.pmfs.source.FaultyStore.Operation.LIST;
import static io.pmfs.source.FaultyStore.Operation.OPEN;
import static io.pmfs.source.FaultyStore.Operation.READ;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.ReadMode;
import io.pmfs.posix.Errno;
import io.pmfs.source.FaultyStore;
import io.pmfs.source.FaultyStore.Operation;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.Hold;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A source that fails, answers in part or hangs. A reader gets the right bytes or the source's own
 * error, and once the source is well again everything, without another mount.
 */
@ParameterizedClass
@EnumSource(names = {"PAGE_CACHE", "PASSTHROUGH"})
@Timeout(value = 180, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class SourceFaultIT {
  private static final int MOUNTS = 3;
  private static final int OPERATIONS = 250;
  private static final int LARGEST = 3 << 20;
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  @Parameter ReadMode mode;

  private Scratch scratch;
  private Dataset dataset;
  private long seed;
  private Random random;
  private final ExecutorService threads = Executors.newCachedThreadPool();

  @BeforeEach
  void makeTree() {
    Machine.requireFuse();
    Machine.requireRoot();
    if (mode == ReadMode.PASSTHROUGH) {
      Machine.requirePassthrough();
    }
    seed = Long.getLong("pmfs.model.seed", System.nanoTime());
    random = new Random(seed);
    scratch = new Scratch();
    int[] sizes =
        IntStream.range(0, 60).map(i -> random.nextInt(i % 10 == 9 ? LARGEST : 60_000)).toArray();
    sizes[0] = LARGEST;
    dataset = Dataset.create(scratch.directory("tree"), sizes);
  }

  @AfterEach
  void remove() {
    threads.shutdownNow();
    if (scratch != null) {
      scratch.close();
    }
  }

  /** With a tier that holds a part of the tree. */
  private OwnMount mount() throws IOException {
    TierSettings settings =
        new TierSettings("tier", "ssd", scratch.directory("tier"), 2L * LARGEST, 0);
    Tier tier = new DirectoryTier(settings, Tier.Usage.NONE, null);
    OwnMount mount = new OwnMount(scratch, dataset.root(), mode, List.of(tier));
    assertThat(mount.bridge().readMode()).as(mount.bridge().readModeReason()).isEqualTo(mode);
    return mount;
  }

  private static void assertWholeTreeReadsRight(OwnMount mount, Path tree) {
    mount.source().clearFaults();
    Command.run("diff", "-r", tree.toString(), mount.mountpoint().toString()).expect(0);
  }

  @Test
  void operations_random_areAnsweredAsTheSourceWouldOrByItsError() throws Exception {
    System.out.println("SourceFaultIT " + mode + " -Dpmfs.model.seed=" + seed);
    int failed = 0;
    for (int i = 0; i < MOUNTS; i++) {
      try (OwnMount mount = mount()) {
        for (int operation = 0; operation < OPERATIONS; operation++) {
          if (operation % 20 == 0) {
            int perThousand = operation == 0 ? 300 : List.of(0, 20, 300).get(random.nextInt(3));
            mount.source().faults(FaultyStore.random(random.nextLong(), perThousand));
          }
          failed += isAnswered(mount, "operation " + operation) ? 0 : 1;
        }
        assertWholeTreeReadsRight(mount, dataset.root());
        if (mode == ReadMode.PASSTHROUGH) {
          assertThat(mount.bridge().opensLeftToKernel()).isPositive();
        }
      }
      for (int change = random.nextInt(8); change > 0; change--) {
        Path file = anyFile();
        Files.write(file, Arrays.copyOf(Dataset.read(anyFile()), random.nextInt(60_000)));
        Files.move(anyFile(), file.resolveSibling("moved-" + random.nextInt(1_000_000)));
      }
    }
    assertThat(failed).as("operations that failed").isBetween(1, MOUNTS * OPERATIONS / 2);
  }

  private Path anyFile() {
    List<Path> files = Installation.files(dataset.root()).stream().sorted().toList();
    return files.get(random.nextInt(files.size()));
  }

  /** Whether it was right; it may fail as the source did meanwhile, and in no other way. */
  private boolean isAnswered(OwnMount mount, String as) throws IOException {
    mount.source().takeInjected(thread -> true);
    String outcome = look(mount, as);
    Set<String> injected =
        mount.source().takeInjected(thread -> !thread.matches("(fetch|store|compare)-.*")).stream()
            .map(Errno::name)
            .collect(Collectors.toCollection(HashSet::new));
    if (outcome.equals("ok")) {
      return true;
    }
    if (injected.contains("ENOENT")) {
      injected.add("ESTALE"); // of a listing, which never fails with ENOENT
    }
    assertThat(injected).as("%s of %s", as, outcome).contains(outcome);
    return false;
  }

  /** How an operation that was right, or failed, ended. */
  private String look(OwnMount mount, String as) throws IOException {
    Path file = anyFile();
    Path shown = mount.mountpoint().resolve(dataset.root().relativize(file));
    switch (random.nextInt(8)) {
      case 0 -> {
        Path directory = file.resolveSibling(".").normalize();
        Path list = shown.resolveSibling(".").normalize();
        long opened = Posix.withFile(list.toString(), Posix.O_DIRECTORY, fd -> 0);
        if (opened < 0) {
          return Posix.outcome(opened);
        }
        Command listed = Command.run("ls", list.toString());
        if (listed.exit() == 0) {
          assertThat(listed.out()).as(as).isEqualTo(Command.run("ls", directory.toString()).out());
          return "ok";
        }
        return errnoIn(listed.err());
      }
      case 1 -> {
        String missing = shown + "-none";
        String outcome = Posix.outcome(Posix.readByte(missing));
        return outcome.equals("ENOENT") ? "ok" : outcome;
      }
      default -> {
        int size = Math.toIntExact(Files.size(file));
        int offset = random.nextInt(size + 10);
        int count = 1 + random.nextInt(300_000);
        byte[] expected =
            Arrays.copyOfRange(
                Dataset.read(file), Math.min(offset, size), Math.min(offset + count, size));
        byte[] buffer = new byte[count];
        long got =
            Posix.withFile(
                shown.toString(), Posix.O_RDONLY, fd -> Posix.pread(fd, buffer, count, offset));
        if (got < 0) {
          return Posix.outcome(got);
        }
        // What was read before an error is a result, and the error that of the next read.
        byte[] answer = Arrays.copyOf(buffer, (int) got);
        byte[] begin = Arrays.copyOf(expected, (int) Math.min(got, expected.length));
        assertThat(answer)
            .as("%s: %s from %d, %d bytes", as, file, offset, count)
            .matches(bytes -> Arrays.equals(bytes, begin));
        return got == expected.length ? "ok" : rest(shown, count - got, offset + got);
      }
    }
  }

  /** Why a read ended early. */
  private static String rest(Path file, long count, long offset) {
    byte[] buffer = new byte[(int) count];
    long got =
        Posix.withFile(
            file.toString(), Posix.O_RDONLY, fd -> Posix.pread(fd, buffer, buffer.length, offset));
    assertThat(got).as("bytes of %s from %d on", file, offset).isNotZero();
    return Posix.outcome(got);
  }

  private static String errnoIn(String message) {
    return message.contains("Input/output")
        ? "EIO"
        : message.contains("Stale")
            ? "ESTALE"
            : message.contains("timed out")
                ? "ETIMEDOUT"
                : message.contains("No such file") ? "ENOENT" : message;
  }

  @ParameterizedTest
  @CsvSource({
    "STATUS, EIO",
    "STATUS, ESTALE",
    "LIST, EIO",
    "LIST, ENOENT",
    "LIST, ETIMEDOUT",
    "OPEN, EIO",
    "OPEN, ENOENT",
    "OPEN, ESTALE",
    "OPEN, ETIMEDOUT",
    "READ, EIO",
    "READ, ESTALE",
    "READ, ETIMEDOUT",
    "FILE_STATUS, ESTALE"
  })
  void read_sourceFails_isItsErrnoAndRightOnceItDoesNot(Operation operation, Errno errno)
      throws Exception {
    try (OwnMount mount = mount()) {
      String file = mount.path(dataset.items().get(0).name()).toString();
      mount.source().on(operation).fail(errno);
      assertThat(Posix.outcome(Posix.readByte(file))).isEqualTo(errno.name());
      mount.source().clearFaults();
      assertThat(Posix.readByte(file)).isOne();
      assertWholeTreeReadsRight(mount, dataset.root());
    }
  }

  @Test
  void read_thatEndsEarlyInTheMiddle_isEioAndNeverAShortFile() throws Exception {
    Dataset.Item item = dataset.items().get(0);
    try (OwnMount mount = mount()) {
      mount.source().on(READ).cut();
      assertThat(Posix.outcome(Posix.readByte(mount.path(item.name()).toString())))
          .isEqualTo("EIO");
      assertWholeTreeReadsRight(mount, dataset.root());
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"EIO", "ENOENT", "ESTALE", "ETIMEDOUT"})
  void list_sourceFails_failsAndIsNeverAnEmptyList(Errno errno) throws Exception {
    try (OwnMount mount = mount()) {
      Path directory = mount.mountpoint().resolve("part-000");
      assertThat(directory).isDirectory();
      mount.source().on(LIST).fail(errno);
      Command listed = Command.run("ls", directory.toString());
      assertThat(listed.exit()).as("%s", listed).isNotZero();
      assertWholeTreeReadsRight(mount, dataset.root());
    }
  }

  @Test
  void list_thatEndsEarlyInTheMiddle_failsAndIsNeverAShortList() throws Exception {
    try (OwnMount mount = mount()) {
      mount.source().on(LIST).cut();
      assertThat(Command.run("ls", mount.path("part-000").toString()).exit()).isNotZero();
      assertWholeTreeReadsRight(mount, dataset.root());
    }
  }

  /** Holds up all reads of the first file. */
  private Hold hold(OwnMount mount) {
    return mount.source().on(OPEN, READ).of(dataset.items().get(0).name()).hold();
  }

  @Test
  void read_sourceHangs_waitsWhileOthersGoOnAndIsRightOnceItIsReleased() throws Exception {
    Dataset.Item item = dataset.items().get(0);
    try (OwnMount mount = mount()) {
      Hold hold = hold(mount);
      CompletableFuture<byte[]> reader =
          CompletableFuture.supplyAsync(() -> Dataset.read(mount.path(item.name())), threads);
      try {
        hold.awaitReached();
        for (Dataset.Item other : dataset.items().subList(1, dataset.items().size())) {
          Dataset.assertEqualBelow(mount.mountpoint(), other);
        }
        assertThat(reader).isNotDone();
      } finally {
        hold.release();
      }
      assertThat(Arrays.equals(reader.get(30, TimeUnit.SECONDS), item.content())).isTrue();
      assertWholeTreeReadsRight(mount, dataset.root());
    }
  }

  @Test
  void unmount_sourceHangs_detachesAtOnceAndTheReaderIsAnsweredOnceItIsReleased() throws Exception {
    Dataset.Item item = dataset.items().get(0);
    try (OwnMount mount = mount()) {
      Hold hold = hold(mount);
      CompletableFuture<byte[]> reader =
          CompletableFuture.supplyAsync(() -> Dataset.read(mount.path(item.name())), threads);
      try {
        hold.awaitReached();
        CompletableFuture<Void> unmount = CompletableFuture.runAsync(() -> detach(mount), threads);
        unmount.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        assertThat(Mounts.at(mount.mountpoint())).isFalse();
        assertThat(reader).isNotDone();
      } finally {
        hold.release();
      }
      assertThat(Arrays.equals(reader.get(30, TimeUnit.SECONDS), item.content())).isTrue();
    }
  }

  private static void detach(OwnMount mount) {
    try {
      mount.bridge().unmount(true);
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }
}
