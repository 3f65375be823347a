package io.pmfs.fuse;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.fuse.system.Shell;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.RocksNamespace;
import io.pmfs.posix.Await;
import io.pmfs.posix.FsException;
import io.pmfs.source.CountedBackingStore;
import io.pmfs.source.FaultyStore;
import io.pmfs.stage.Lenders;
import io.pmfs.stage.Stager;
import io.pmfs.stage.StagerSettings;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.Share;
import io.pmfs.stage.copies.TestCopies;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A real file system over a small real tree. */
final class KernelFixture implements AutoCloseable {
  private final java.util.concurrent.atomic.AtomicLong looks =
      new java.util.concurrent.atomic.AtomicLong();
  static final int SMALL_SIZE = 1000;
  static final int LARGE_SIZE = 1_500_123;
  static final int ENTRIES = 300;
  static final String LONGEST_NAME = "n".repeat(255);

  final Path source;
  final PmfsFileSystem fileSystem;
  final Copies copies;
  private final Stager stager;
  private final RocksNamespace namespace;
  final FaultyStore faulty;
  final CountedBackingStore store;
  private final ExecutorService threads = Executors.newFixedThreadPool(2);

  /** With one tier. */
  KernelFixture(Path directory) throws Exception {
    this(directory, true);
  }

  KernelFixture(Path directory, boolean hasTier) throws Exception {
    source = Files.createDirectories(directory.resolve("source"));
    makeTree();
    namespace =
        RocksNamespace.open(
            directory.resolve("state"), "test", 16 << 20, UUID.randomUUID(), null, line -> {});
    TierSettings settings =
        new TierSettings("tier", "ssd", directory.resolve("tier"), 100L << 20, 0);
    List<Tier> tiers =
        hasTier ? List.of(new DirectoryTier(settings, DirectoryTier.Usage.NONE, null)) : List.of();
    copies = TestCopies.raw(namespace, tiers);
    faulty = new FaultyStore(new DirectoryStore(source));
    store = new CountedBackingStore(faulty);
    stager =
        new Stager(
            namespace,
            store,
            copies,
            EvictionPolicy.NONE,
            new StagerSettings(2, 8 << 20, 1000),
            Share.ALL,
            Lenders.none(),
            () -> {});
    fileSystem = new PmfsFileSystem(namespace, store, copies, stager, threads, this::anHourLater);
  }

  private void makeTree() throws IOException {
    Files.write(source.resolve("small"), content(SMALL_SIZE));
    Files.write(source.resolve("large"), content(LARGE_SIZE));
    Files.write(source.resolve("empty"), new byte[0]);
    Files.write(source.resolve(LONGEST_NAME), content(1));
    Files.createDirectory(source.resolve("directory"));
    for (int i = 0; i < ENTRIES; i++) {
      String name = "e" + i + "x".repeat(i % 200);
      Files.write(source.resolve("directory").resolve(name), content(i));
    }
    Shell.run(source, "ln -s small/target link; mkfifo fifo; mkdir sub; touch sub/inner");
  }

  static byte[] content(int size) {
    byte[] content = new byte[size];
    new Random(size).nextBytes(content);
    return content;
  }

  long inode(String... path) throws FsException {
    long number = PmfsFileSystem.ROOT;
    for (String name : path) {
      number = fileSystem.find(number, FileName.of(name)).inode();
    }
    return number;
  }

  /** The source lends its own files. */
  void lendItself() {
    faulty.lend(
        path -> {
          try {
            return PassedFile.open(source.resolve(path.toString()));
          } catch (FsException e) {
            throw new AssertionError(e);
          }
        });
  }

  KernelSession session() {
    return new KernelSession(
        new KernelOperations(fileSystem, 1000, null, -1, 56, AccessRule.MODES));
  }

  void awaitStaged() {
    Await.until("staging is idle", () -> stager.status().idle());
  }

  @Override
  public void close() {
    stager.close();
    copies.close();
    namespace.close();
    store.close();
    threads.shutdownNow();
  }

  /** A clock that advances so far at each call that every cached value has expired. */
  private Instant anHourLater() {
    return Instant.now().plus(Duration.ofHours(looks.incrementAndGet()));
  }
}
