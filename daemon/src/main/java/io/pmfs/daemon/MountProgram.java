package io.pmfs.daemon;

import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountPoint;
import io.pmfs.settings.ExitStatus;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.NativeText;
import io.pmfs.settings.Surroundings;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Unmounts for root's scripts, which must not leave to umount(8) a name that may change meanwhile.
 * The arguments: {@code unmount}, {@code detach} or {@code abort}, a session's device number as in
 * mountinfo, and a mount point; without one, all of that session. Success if nothing is there.
 */
public final class MountProgram {
  private static final int ATTEMPTS = 10;
  private static final Duration PAUSE = Duration.ofMillis(100);

  private MountProgram() {}

  /** Exits with 1, and the reason in a line, if something is still mounted. */
  public static void main(String[] args) throws IOException, MountFailure {
    String[] words = NativeText.arguments(args);
    String device = words[1];
    List<Path> places =
        words.length > 2
            ? List.of(Path.of(words[2]))
            : Surroundings.real().mounts().placesOf(device);
    PrintStream errors = NativeText.standardError();
    int status = ExitStatus.DONE;
    for (Path path : places) {
      try (MountPoint place = MountPoint.open(path)) {
        switch (words[0]) {
          case "abort" -> place.abort(device);
          case "detach" -> place.unmount(device, true);
          default -> unmount(place, device);
        }
      } catch (MountException e) {
        errors.println(e.getMessage());
        status = ExitStatus.FAILED;
      }
    }
    System.exit(status);
  }

  /** Waits a second for who uses it: to start again for another try would cost more. */
  private static void unmount(MountPoint place, String device) throws MountException {
    for (int attempt = 1; ; attempt++) {
      try {
        place.unmount(device, false);
        return;
      } catch (MountException e) {
        if (e.reason() != MountException.Reason.BUSY || attempt == ATTEMPTS) {
          throw e;
        }
      }
      LockSupport.parkNanos(PAUSE.toNanos());
    }
  }
}
