package io.pmfs.fuse;

import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountException.Reason;
import io.pmfs.posix.DaemonThread;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Looks up a mount point until the daemon answers. */
final class Probe {
  private Probe() {}

  /**
   * Returns once the daemon answers requests at the mount point; on timeout unmounts and throws.
   */
  static void await(Path mountpoint, Duration timeout, CountDownLatch ended, Bridge bridge)
      throws MountException {
    CountDownLatch answered = new CountDownLatch(1);
    DaemonThread.start(
        "probe",
        () -> {
          try {
            Files.getAttribute(mountpoint, "unix:ino");
            Files.getFileStore(mountpoint).getTotalSpace();
            answered.countDown();
          } catch (IOException e) {
            // Not answered: the caller reports the timeout.
          }
        });
    boolean ready = false;
    try {
      ready = answered.await(timeout.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (!ready) {
      if (ended.getCount() > 0) {
        bridge.unmount(true);
      }
      throw new MountException(
          Reason.FAILED,
          mountpoint + " was mounted but did not answer within " + timeout.toSeconds() + " s",
          null);
    }
  }
}
