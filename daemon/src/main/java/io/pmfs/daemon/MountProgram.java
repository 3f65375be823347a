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
 * Unmounts for root's scripts, which must not leave to umount(8) a name that may change meanwhile.
 * The arguments: {@code unmount}, {@code detach} or {@code abort}, a session's device number as in
 * mountinfo, and a mount point; without one, all of that session. Success if nothing is there.
 *
 * <p>Or {@code show-source}, that number, the file with the session's settings, and how many
 * daemons died: then the source takes the place of the session. The last line of the output says
 * where, or why not.
 */
public final class MountProgram {
  private static final int ATTEMPTS = 10;
  private static final Duration PAUSE = Duration.ofMillis(100);

  private MountProgram() {}

  /** Exits with 1, and the reason in a line, if something is still mounted. */
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
