package io.pmfs.daemon;

import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountPoint;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.NativeText;
import io.pmfs.machine.Reason;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.places.Surroundings;
import io.pmfs.settings.SessionSettings;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Unmounts for root's scripts, because umount(8) would follow a path that may change meanwhile.
 * Arguments: {@code unmount}, {@code detach} or {@code abort}, a session's device number as in
 * mountinfo, and a mount point (default: all of the session's). Succeeds if nothing is mounted
 * there.
 *
 * <p>Or {@code show-source}, the device number, the file with the session's settings, and how many
 * daemons died: mounts the source in place of the session. The last line of output is where, or why
 * not.
 */
public final class MountProgram {
  private static final int ATTEMPTS = 10;
  private static final Duration PAUSE = Duration.ofMillis(100);

  private MountProgram() {}

  /** If something is still mounted, prints a line with the reason and exits with 1. */
  public static void main(String[] args) throws IOException, MountFailure {
    String[] words = NativeText.arguments(args);
    String device = words[1];
    if (words[0].equals("show-source")) {
      NativeText.standardOutput().println(showSource(words));
      System.exit(ExitStatus.DONE);
    }
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

  private static String showSource(String[] words) {
    try {
      Surroundings surroundings = Surroundings.real();
      SessionSettings session = SessionSettings.load(Path.of(words[2]));
      String shown =
          new SourceInPlace(words[1], session, Integer.parseInt(words[3]), surroundings).show();
      Path mountpoint = session.configuration().mountpoint();
      if (mountpoint != null) {
        KnownMounts.open(surroundings).forget(mountpoint);
      }
      return "shown: " + shown;
    } catch (MountFailure e) {
      return "not shown: " + e.line();
    } catch (IOException e) {
      return "not shown: " + words[2] + ": " + Reason.of(e);
    }
  }

  /** Retries a busy unmount for a second, which is cheaper than another JVM. */
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
