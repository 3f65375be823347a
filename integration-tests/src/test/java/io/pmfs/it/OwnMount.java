package io.pmfs.it;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.KernelBridge;
import io.pmfs.fuse.ReadMode;
import io.pmfs.fuse.mounting.MountSpec;
import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Namespace;
import io.pmfs.metadata.RocksNamespace;
import io.pmfs.posix.FsException;
import io.pmfs.source.FaultyStore;
import io.pmfs.stage.Lenders;
import io.pmfs.stage.Stager;
import io.pmfs.stage.StagerSettings;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.Share;
import io.pmfs.stage.copies.TestCopies;
import io.pmfs.tier.Tier;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A mount that this very process serves by the kernel's protocol, without tiers unless given some;
 * its source can be made to fail, to hang and to be watched, and lookups are counted.
 */
final class OwnMount implements AutoCloseable {
  /** Requests that may be in progress at once. */
  static final int WORKERS = 64;

  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  private final Path mountpoint;
  private final RocksNamespace namespace;
  private final FaultyStore source;
  private final Copies copies;
  private final Stager stager;
  private final ExecutorService threads = Executors.newFixedThreadPool(2);
  private final PmfsFileSystem fileSystem;
  private final KernelBridge bridge;
  private final AtomicInteger lookups = new AtomicInteger();

  OwnMount(Scratch scratch, Path tree) {
    this(scratch, tree, List.of());
  }

  /** With tiers, which are closed with it. */
  OwnMount(Scratch scratch, Path tree, List<Tier> tiers) {
    this(scratch, tree, ReadMode.PAGE_CACHE, tiers);
  }

  OwnMount(Scratch scratch, Path tree, ReadMode readMode, List<Tier> tiers) {
    this(scratch, tree, readMode, tiers, false);
  }

  /** One that other users can enter. */
  static OwnMount forOthers(Scratch scratch, Path tree) {
    return new OwnMount(scratch, tree, ReadMode.PAGE_CACHE, List.of(), true);
  }

  private OwnMount(
      Scratch scratch, Path tree, ReadMode readMode, List<Tier> tiers, boolean allowOther) {
    Machine.requireFuse();
    Machine.requireRoot();
    mountpoint = scratch.directory("own");
    try {
      namespace =
          RocksNamespace.open(
              scratch.root().resolve("own-state"),
              tree.toString(),
              16 << 20,
              UUID.randomUUID(),
              null,
              line -> {});
      Namespace counted = countingLookups(namespace);
      source = new FaultyStore(new DirectoryStore(tree));
      copies = TestCopies.raw(counted, tiers);
      stager =
          new Stager(
              counted,
              source,
              copies,
              EvictionPolicy.NONE,
              new StagerSettings(2, 64 << 20, 1000),
              Share.ALL,
              Lenders.none(),
              () -> {});
      fileSystem =
          new PmfsFileSystem(counted, source, copies, stager, threads, InstantSource.system());
      MountSpec options =
          new MountSpec(mountpoint, tree.toString(), allowOther, false, false, Duration.ofDays(1));
      bridge =
          new KernelBridge(
              fileSystem, options, readMode, WORKERS, null, KernelBridge.ALL_KERNEL_FLAGS);
      bridge.mount(TIMEOUT);
      stager.compareTiers();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  private Namespace countingLookups(Namespace real) {
    return (Namespace)
        Proxy.newProxyInstance(
            Namespace.class.getClassLoader(),
            new Class<?>[] {Namespace.class},
            (self, method, arguments) -> {
              if (method.getName().equals("find")) {
                lookups.incrementAndGet();
              }
              try {
                return method.invoke(real, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  Path mountpoint() {
    return mountpoint;
  }

  Path path(String name) {
    return mountpoint.resolve(name);
  }

  KernelBridge bridge() {
    return bridge;
  }

  /** What the mount shows, and faults of it. */
  FaultyStore source() {
    return source;
  }

  long inode(String name) {
    try {
      return fileSystem.find(PmfsFileSystem.ROOT, FileName.of(name)).inode();
    } catch (FsException e) {
      throw new AssertionError(e);
    }
  }

  /** Has the file compared with the source, as another node may. */
  void lookAgain(String name) {
    try {
      fileSystem.lookAgain(inode(name));
    } catch (FsException e) {
      throw new AssertionError(e);
    }
  }

  /** Requests for names so far. */
  int lookups() {
    return lookups.get();
  }

  /** How many copies were made. */
  long copies() {
    return stager.status().completed();
  }

  /** Requests for contents so far. */
  long reads() {
    return fileSystem.readStatistics().requests();
  }

  @Override
  public void close() {
    source.clearFaults();
    try {
      bridge.unmount(true);
      if (!bridge.awaitEnd(TIMEOUT)) {
        throw new AssertionError("the session does not end");
      }
    } catch (Exception e) {
      throw new AssertionError(e);
    } finally {
      stager.close();
      copies.close();
      namespace.close();
      source.close();
      threads.shutdownNow();
    }
  }
}
