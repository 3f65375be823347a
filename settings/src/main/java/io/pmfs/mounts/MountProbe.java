package io.pmfs.mounts;

import io.pmfs.fuse.Bridge;
import io.pmfs.machine.Reason;
import io.pmfs.posix.DaemonThread;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.attribute.UserDefinedFileAttributeView;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Tests whether a directory answers, without hanging if its daemon hangs. */
public enum MountProbe {
  ANSWERS,
  /** A mount whose daemon died: ENOTCONN. */
  STALE,
  HUNG,
  ABSENT,
  DENIED,
  BROKEN;

  /** The attribute's name in Java, without the namespace. */
  private static final String PROBE = Bridge.PROBE.substring("user.".length());

  private static final Duration PATIENCE = Duration.ofSeconds(5);

  public static MountProbe of(Path path) {
    CompletableFuture<MountProbe> answer = new CompletableFuture<>();
    // A thread that hangs in the kernel cannot be stopped, so it must not keep the process alive.
    try {
      DaemonThread.start("mount-probe", () -> answer.complete(look(path)));
    } catch (OutOfMemoryError e) {
      return look(path); // A mount that hangs is rarer than a machine without threads.
    }
    try {
      return answer.get(PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException e) {
      return HUNG;
    } catch (ExecutionException e) {
      return BROKEN;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return HUNG;
    }
  }

  private static MountProbe look(Path path) {
    try (DirectoryStream<Path> opened = Files.newDirectoryStream(path)) {
      Objects.requireNonNull(opened);
      return isDisconnected(path) ? STALE : ANSWERS;
    } catch (NotDirectoryException e) {
      return ANSWERS;
    } catch (NoSuchFileException e) {
      return ABSENT;
    } catch (AccessDeniedException e) {
      return DENIED;
    } catch (IOException e) {
      return isDisconnected(e) ? STALE : BROKEN;
    }
  }

  /**
   * The kernel caches the attributes of a mount whose daemon died, and opens its directories
   * without the daemon, but requests an extended attribute from the daemon each time.
   */
  private static boolean isDisconnected(Path path) {
    try {
      Files.getFileAttributeView(path, UserDefinedFileAttributeView.class).size(PROBE);
      return false;
    } catch (IOException e) {
      return isDisconnected(e);
    }
  }

  /** The JDK has no exceptions for ENOTCONN and ECONNABORTED. */
  private static boolean isDisconnected(IOException e) {
    String reason = Reason.of(e);
    return reason.contains("endpoint is not connected") || reason.contains("connection abort");
  }
}
