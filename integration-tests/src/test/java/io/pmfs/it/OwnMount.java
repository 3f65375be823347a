package io.pmfs.it;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.DirectoryStore;
import io.pmfs.fuse.KernelBridge;
import io.pmfs.fuse.MountOptions;
import io.pmfs.fuse.ReadMode;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Namespace;
import io.pmfs.metadata.RocksNamespace;
import io.pmfs.stage.Copies;
import io.pmfs.stage.EvictionPolicy;
import io.pmfs.stage.Stager;
import io.pmfs.stage.StagerSettings;
import io.pmfs.tier.BackingStore;
import io.pmfs.tier.FsException;
import io.pmfs.tier.SourceFile;
import io.pmfs.tier.Tier;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A mount that this very process serves by the kernel's protocol, without tiers unless given some;
 * the source's reads can be watched and held up, and lookups are counted.
 */
final class OwnMount implements AutoCloseable {
  /** Requests that may be in progress at once. */
  static final int WORKERS = 64;

  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  /** Called before each {@code read} of a file and {@code list} of a directory of the source. */
  interface Hook {
    void before(String operation) throws FsException;
  }

  private final Path mountpoint;
  private final RocksNamespace namespace;
  private final BackingStore source;
  private final Copies copies;
  private final Stager stager;
  private final ExecutorService threads = Executors.newFixedThreadPool(2);
  private final PmfsFileSystem fileSystem;
  private final KernelBridge bridge;
  private final AtomicInteger lookups = new AtomicInteger();
  private volatile Hook hook = operation -> {};

  OwnMount(Scratch scratch, Path tree) {
    this(scratch, tree, List.of());
  }

  /** With tiers, which are closed with it. */
  OwnMount(Scratch scratch, Path tree, List<Tier> tiers) {
    Machine.requireFuse();
    Machine.requireRoot();
    mountpoint = scratch.directory("own");
    try {
      namespace =
          RocksNamespace.open(scratch.root().resolve("own-state"), tree.toString(), 16 << 20);
      Namespace counted = proxy(Namespace.class, namespace);
      source = proxy(BackingStore.class, new DirectoryStore(tree));
      copies = new Copies(counted, tiers);
      stager =
          new Stager(
              counted, source, copies, EvictionPolicy.NONE, new StagerSettings(2, 64 << 20, 1000));
      fileSystem =
          new PmfsFileSystem(counted, source, copies, stager, threads, InstantSource.system());
      MountOptions options =
          new MountOptions(mountpoint, tree.toString(), false, Duration.ofDays(1));
      bridge =
          new KernelBridge(
              fileSystem,
              options,
              ReadMode.PAGE_CACHE,
              WORKERS,
              null,
              KernelBridge.ALL_KERNEL_FLAGS);
      bridge.mount(TIMEOUT);
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  private <T> T proxy(Class<T> type, T real) {
    Object proxy =
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (self, method, arguments) -> {
              if (type == Namespace.class && method.getName().equals("find")) {
                lookups.incrementAndGet();
              } else if (method.getName().equals(type == SourceFile.class ? "read" : "list")) {
                hook.before(method.getName());
              }
              try {
                Object result = method.invoke(real, arguments);
                return result instanceof SourceFile file ? proxy(SourceFile.class, file) : result;
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
    return type.cast(proxy);
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

  void before(Hook next) {
    hook = next;
  }

  long inode(String name) {
    try {
      return fileSystem.find(PmfsFileSystem.ROOT, FileName.of(name)).inode();
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
    hook = operation -> {};
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
