package io.pmfs.it;

import static io.pmfs.source.FaultyStore.Operation.LIST;
import static io.pmfs.source.FaultyStore.Operation.READ;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import io.pmfs.tier.Hold;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Daemons that die or are replaced where the kernel cannot send requests again: as on a kernel
 * 4.18, as far as the flags of INIT make one.
 */
@Timeout(value = 180, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class OldKernelIT {
  /** Bits 0 to 21, those of FUSE 7.27: no FUSE_MAX_PAGES, no passthrough, no resending. */
  static final String FLAGS = "3fffff";

  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final String ABORTED = "Software caused connection abort";

  @Installed(byRoot = true)
  private Installation pmfs;

  private Dataset dataset;

  @BeforeEach
  void makeSource() {
    pmfs.environment("PMFS_KERNEL_FLAGS", FLAGS);
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(100, 150_000));
  }

  @Test
  @OnRequest("cases")
  void kill9_whileAReadWaitsForTheSource_theReaderGoesOnOrGetsAnError() throws Exception {
    Dataset.Item item = dataset.items().get(0);
    try (OwnMount source = new OwnMount(pmfs.scratch(), dataset.root());
        MountedPmfs mount = pmfs.mount(source.mountpoint())) {
      Hold reads = source.source().on(READ).hold();
      CompletableFuture<byte[]> reader =
          CompletableFuture.supplyAsync(() -> read(mount.mountpoint().resolve(item.name())));
      reads.awaitReached();
      long pid = mount.status().number("pid");
      kill(pid);
      mount.awaitSuccessor(pid);
      source.source().clearFaults();
      // The kernel asks again by itself for a page that could not be read ahead.
      assertThat(reader.get(30, TimeUnit.SECONDS)).isIn(item.content(), new byte[0]);
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  /** The content; nothing if the session ended the request. */
  private static byte[] read(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      assertThat(e).hasMessageContaining(ABORTED);
      return new byte[0];
    }
  }

  @Test
  @OnRequest("cases")
  void kill9_whileAListingWaitsForTheSource_theListerGetsAnError() throws Exception {
    Files.createDirectories(dataset.root().resolve("directory"));
    Files.createFile(dataset.root().resolve("directory/entry"));
    try (OwnMount source = new OwnMount(pmfs.scratch(), dataset.root());
        MountedPmfs mount = pmfs.mount(source.mountpoint())) {
      Path directory = mount.mountpoint().resolve("directory");
      assertThat(directory).exists();
      Hold lists = source.source().on(LIST).hold();
      CompletableFuture<Command> lister =
          CompletableFuture.supplyAsync(() -> Command.run("ls", directory.toString()));
      lists.awaitReached();
      long pid = mount.status().number("pid");
      kill(pid);
      lists.release();
      Command listed = lister.get(30, TimeUnit.SECONDS);
      assertThat(listed.exit()).as("%s", listed).isNotZero();
      assertThat(listed.err()).contains(ABORTED);
      mount.awaitSuccessor(pid);
      assertThat(Command.run("ls", directory.toString()).expect(0).out()).isEqualTo("entry\n");
    }
  }

  @Test
  void kill9_underReaders_noByteIsWrongAndNobodyHangs() {
    try (MountedPmfs mount = pmfs.mount(dataset.root());
        Readers readers = new Readers(mount.mountpoint())) {
      for (int kill = 0; kill < 3; kill++) {
        readers.awaitMore(100);
        long pid = mount.status().number("pid");
        kill(pid);
        mount.awaitSuccessor(pid);
      }
      readers.awaitMore(100);
      assertThat(readers.failures).allSatisfy(e -> assertThat(e).hasMessageContaining(ABORTED));
    }
  }

  @Test
  void upgrade_underReaders_isNoticedByNobody() {
    try (MountedPmfs mount = pmfs.mount(dataset.root());
        Readers readers = new Readers(mount.mountpoint())) {
      for (int upgrade = 0; upgrade < 3; upgrade++) {
        readers.awaitMore(100);
        long pid = mount.status().number("pid");
        assertThat(pmfs.run("upgrade", mount.mountpoint().toString()).exit()).isZero();
        assertThat(mount.status().number("pid")).isNotEqualTo(pid);
      }
      readers.awaitMore(100);
      assertThat(readers.failures).isEmpty();
    }
  }

  private static void kill(long pid) {
    Command.run("kill", "-KILL", Long.toString(pid)).expect(0);
  }

  /** Threads that read files in random order and compare every byte, until closed. */
  private final class Readers implements AutoCloseable {
    private final List<Thread> threads = new ArrayList<>();
    private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    private final AtomicInteger read = new AtomicInteger();
    private volatile boolean stopping;

    Readers(Path mountpoint) {
      for (int i = 0; i < 4; i++) {
        Random random = new Random(i);
        Thread thread = new Thread(() -> readOn(mountpoint, random), "reader-" + i);
        threads.add(thread);
        thread.start();
      }
    }

    private void readOn(Path mountpoint, Random random) {
      while (!stopping) {
        Dataset.Item item = dataset.items().get(random.nextInt(dataset.items().size()));
        try {
          byte[] content = Files.readAllBytes(mountpoint.resolve(item.name()));
          assertThat(java.util.Arrays.equals(content, item.content())).as("%s", item).isTrue();
        } catch (IOException | AssertionError e) {
          failures.add(e);
        }
        // Else the kernel soon answers everything from memory.
        Posix.forgetData(mountpoint + "/" + item.name());
        if (read.incrementAndGet() % 50 == 0) {
          Machine.dropNames();
        }
      }
    }

    void awaitMore(int count) {
      int goal = read.get() + count;
      Await.until("reads", PATIENCE, () -> read.get() >= goal);
    }

    @Override
    public void close() {
      stopping = true;
      for (Thread thread : threads) {
        Await.until("reader ended", PATIENCE, () -> !thread.isAlive());
      }
    }
  }
}
