package io.pmfs.fuse.mounting;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.fuse.mounting.MountException.Reason;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.Charset;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Unmounts: by descriptors for root, by the set-user-id fusermount for other users. */
public final class Unmount {
  private static final long TIMEOUT_SECONDS = 30;

  /** A lookup, such as the daemon's own heartbeat, keeps a mount busy for a moment. */
  private static final int ATTEMPTS = 5;

  private static final long PAUSE_MS = 50;

  private Unmount() {}

  /** Unmounts a session. Does nothing if the session is no longer at its mount point. */
  public static void unmount(SessionMount session, boolean lazy) throws MountException {
    for (int attempt = 1; ; attempt++) {
      if (!session.isAtMountpoint()) {
        return;
      }
      try {
        unmountNow(session, lazy);
        return;
      } catch (MountException e) {
        if (e.reason() != Reason.BUSY || attempt == ATTEMPTS) {
          throw e;
        }
      }
      try {
        Thread.sleep(PAUSE_MS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new MountException(Reason.FAILED, "interrupted while unmounting", e);
      }
    }
  }

  private static void unmountNow(SessionMount session, boolean lazy) throws MountException {
    if (MountRight.isHeld()) {
      try (MountPoint place = MountPoint.open(session.mountpoint())) {
        place.unmount(session.knownDevice(), lazy);
      }
    } else {
      fusermount(session.mountpoint(), lazy);
    }
  }

  private static void fusermount(Path mountpoint, boolean lazy) throws MountException {
    Throwable missing = null;
    boolean isLimit = false;
    for (String program : Fusermount.PROGRAMS) {
      List<String> command = new ArrayList<>(List.of(program, "-u"));
      if (lazy) {
        command.add("-z");
      }
      command.add("--");
      // ProcessBuilder encodes with the default charset.
      command.add(
          Charset.defaultCharset().equals(ISO_8859_1)
              ? new String(mountpoint.toString().getBytes(UTF_8), ISO_8859_1)
              : mountpoint.toString());
      try {
        run(mountpoint, command);
        return;
      } catch (IOException | OutOfMemoryError e) {
        missing = e;
        isLimit |= isLimit(e);
      }
    }
    throw new MountException(
        Reason.FAILED,
        "fusermount3 and fusermount cannot be run; "
            + (isLimit ? "end other processes, or raise their limit" : "install fuse3"),
        missing);
  }

  /** Whether no process or thread can be started: EAGAIN of fork(2). */
  private static boolean isLimit(Throwable e) {
    return e instanceof OutOfMemoryError || String.valueOf(e.getMessage()).contains("error=11,");
  }

  private static void run(Path mountpoint, List<String> command)
      throws IOException, MountException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    try {
      // The program writes at most one line, which fits in a pipe; a child may keep the pipe open.
      if (!process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        throw new MountException(Reason.FAILED, command.get(0) + " did not finish in time", null);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new MountException(Reason.FAILED, "interrupted while unmounting", e);
    }
    if (process.exitValue() != 0) {
      InputStream stream = process.getInputStream();
      String output = new String(stream.readNBytes(stream.available()), UTF_8).strip();
      throw new MountException(
          output.contains("busy") ? Reason.BUSY : Reason.FAILED,
          mountpoint
              + " cannot be unmounted: "
              + (output.isEmpty()
                  ? command.get(0) + " ended with status " + process.exitValue()
                  : output),
          null);
    }
  }
}
