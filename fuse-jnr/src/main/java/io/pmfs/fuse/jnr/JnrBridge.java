package io.pmfs.fuse.jnr;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.Bridge;
import io.pmfs.fuse.ReadMode;
import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountException.Reason;
import io.pmfs.fuse.mounting.MountSpec;
import io.pmfs.fuse.mounting.ReadAhead;
import io.pmfs.fuse.mounting.SessionMount;
import io.pmfs.fuse.mounting.Unmount;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.protocol.RequestListener;
import io.pmfs.posix.DaemonThread;
import java.io.IOException;
import java.nio.charset.Charset;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ru.serce.jnrfuse.FuseException;

/**
 * jnr-fuse over libfuse 2: runs wherever that library does. libfuse turns the kernel's inodes into
 * paths, and this bridge turns the paths back into inodes. Requests carry at most 128 KiB. The page
 * cache answers repeated reads: OPEN is answered ENOSYS once, after which the kernel opens files by
 * itself and keeps their data.
 */
final class JnrBridge implements Bridge {
  static final String NAME = "jnr";

  private static final Logger log = LoggerFactory.getLogger(JnrBridge.class);

  /** The largest read that libfuse 2 requests; see docs/results/read-path.md. */
  private static final int MAX_READ_BYTES = 128 * 1024;

  private static final long PROBE_INTERVAL_MS = 5;

  private static final int NO_DESCRIPTOR = -1;

  private final MountSpec options;
  private final SessionMount own;
  private final JnrOperations operations;
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile @Nullable Throwable failure;

  /**
   * Loads libfuse.
   *
   * @throws MountException if libfuse is not installed
   */
  JnrBridge(PmfsFileSystem fileSystem, MountSpec options) throws MountException {
    if (!Charset.defaultCharset().equals(ISO_8859_1)) {
      // jnr-fuse decodes paths with the default charset; only this one preserves every byte.
      throw new IllegalStateException("the JVM must run with -Dfile.encoding=ISO-8859-1");
    }
    this.options = options;
    this.own = new SessionMount(options.mountpoint(), null);
    try {
      this.operations = new JnrOperations(fileSystem, options.allowOther());
    } catch (UnsatisfiedLinkError e) {
      throw new MountException(
          Reason.UNAVAILABLE,
          "libfuse.so.2 cannot be loaded; install it (Debian: apt-get install libfuse2, Red Hat:"
              + " dnf install fuse-libs)",
          e);
    }
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public ReadMode readMode() {
    return ReadMode.PAGE_CACHE;
  }

  @Override
  public String readModeReason() {
    return "libfuse 2 supports no other mode";
  }

  @Override
  public RequestLatencies latencies() {
    return operations.latencies();
  }

  @Override
  public void listen(RequestListener listener) {
    operations.latencies().listen(listener);
  }

  @Override
  public void mount(Duration timeout) throws MountException {
    Object before = device(options.mountpoint());
    DaemonThread.start("fuse", this::serve);
    CountDownLatch answered = new CountDownLatch(1);
    DaemonThread.start("probe", () -> probe(before, answered));
    boolean ready;
    try {
      ready = answered.await(timeout.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      ready = false;
    }
    if (ended.getCount() == 0) {
      Throwable cause = failure;
      throw new MountException(
          Reason.FAILED,
          "libfuse could not mount "
              + options.mountpoint()
              + (cause == null ? "" : ": " + cause.getMessage()),
          cause);
    }
    if (!ready) {
      unmount(true);
      throw new MountException(
          Reason.FAILED,
          options.mountpoint()
              + " was mounted but did not answer within "
              + timeout.toSeconds()
              + " s",
          null);
    }
    own.recognize(NO_DESCRIPTOR);
    ReadAhead.set(own.device());
  }

  private void serve() {
    try {
      operations.mount(bytesOf(options.mountpoint()), true, false, arguments());
    } catch (FuseException | LinkageError e) {
      failure = e;
    } finally {
      ended.countDown();
    }
  }

  /**
   * jnr-fuse encodes the path with the default charset. This path has one char for each byte of the
   * real one.
   */
  private static Path bytesOf(Path path) {
    return Path.of(bytesOf(path.toString()));
  }

  private static String bytesOf(String text) {
    return new String(text.getBytes(UTF_8), ISO_8859_1);
  }

  private String[] arguments() {
    long seconds = options.timeout().toSeconds();
    List<String> list = new ArrayList<>();
    list.add("ro");
    list.add("nosuid");
    list.add("nodev");
    if (options.noExec()) {
      list.add("noexec");
    }
    list.add("default_permissions");
    list.add("use_ino");
    list.add("kernel_cache");
    list.add("attr_timeout=" + seconds);
    list.add("entry_timeout=" + seconds);
    list.add("negative_timeout=" + seconds);
    list.add("max_read=" + MAX_READ_BYTES);
    list.add("subtype=pmfs");
    list.add("fsname=" + bytesOf(options.source()).replace("\\", "\\\\").replace(",", "\\,"));
    if (options.allowOther()) {
      list.add("allow_other");
    }
    return new String[] {"-o", String.join(",", list)};
  }

  /** Looks up the mount point until another file system answers there, or the session ends. */
  private void probe(Object before, CountDownLatch answered) {
    try {
      while (ended.getCount() > 0) {
        Object now = device(options.mountpoint());
        if (!now.equals(before) && !now.equals(NO_DEVICE)) {
          break;
        }
        if (ended.await(PROBE_INTERVAL_MS, TimeUnit.MILLISECONDS)) {
          break;
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      answered.countDown();
    }
  }

  private static final Object NO_DEVICE = -1L;

  private static Object device(Path path) {
    try {
      return Files.getAttribute(path, "unix:dev", LinkOption.NOFOLLOW_LINKS);
    } catch (IOException e) {
      return NO_DEVICE;
    }
  }

  @Override
  public void unmount(boolean lazy) throws MountException {
    if (ended.getCount() == 0) {
      return;
    }
    log.info("unmounting {}{}", options.mountpoint(), lazy ? ", lazily" : "");
    Unmount.unmount(own, lazy);
  }

  @Override
  public boolean isAtMountpoint() {
    return own.isAtMountpoint();
  }

  @Override
  public @Nullable String device() {
    return own.device();
  }

  @Override
  public boolean awaitEnd(Duration timeout) throws InterruptedException {
    return ended.await(timeout.toMillis(), TimeUnit.MILLISECONDS);
  }
}
