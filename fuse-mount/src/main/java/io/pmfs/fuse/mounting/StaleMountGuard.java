package io.pmfs.fuse.mounting;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A small process that unmounts if this one dies: it waits for the end of a pipe that only this
 * process holds open.
 *
 * <p>fusermount's option auto_unmount does not work here. It checks whether opening the mount point
 * fails, but with no_opendir the kernel answers that open itself. Before libfuse 3.15 it also
 * checks as root, which has no access to a user's mount.
 */
final class StaleMountGuard implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(StaleMountGuard.class);

  private static final long CLOSE_SECONDS = 2;

  /**
   * At the end of standard input, the script calls statfs, which reaches the daemon: only a mount
   * without a daemon is unmounted. A line of input names the device number of our mount; other
   * mounts on the path are then not touched. The mount point is passed in octal, so that no charset
   * changes it, and again as mountinfo (proc(5)) shows it.
   */
  private static final String SCRIPT =
      """
      trap '' HUP INT QUIT TERM
      mountpoint=$(printf '%bx' "$1")
      mountpoint=${mountpoint%x}
      device=
      while read -r line; do device=$line; done
      case $(LC_ALL=C stat -f -- "$mountpoint" 2>&1 >/dev/null) in
      *'endpoint is not connected'* | *'connection abort'*) ;;
      *) exit ;;
      esac
      written=$(printf '%bx' "$2")
      top=
      while read -r _ _ number _ place _; do
        [ "$place" != "${written%x}" ] || top=$number
      done </proc/self/mountinfo
      [ -z "$device" ] || [ "$device" = "$top" ] || exit
      fusermount3 -u -z -- "$mountpoint" || fusermount -u -z -- "$mountpoint"
      """;

  private final Process process;

  private StaleMountGuard(Process process) {
    this.process = process;
  }

  /** Starts watching a mount point that is mounted, or about to be. */
  static StaleMountGuard start(Path mountpoint) throws IOException {
    return new StaleMountGuard(
        new ProcessBuilder(command(mountpoint))
            .directory(new File("/"))
            .redirectOutput(Redirect.DISCARD)
            .redirectError(Redirect.DISCARD)
            .start());
  }

  /** Runs in a session of its own, so that signals to this process group do not reach it. */
  static List<String> command(Path mountpoint) {
    return List.of(
        "setsid",
        "sh",
        "-c",
        SCRIPT,
        "pmfs-guard",
        octal(mountpoint.toString().getBytes(UTF_8)),
        octal(SessionMount.escaped(mountpoint).getBytes(ISO_8859_1)));
  }

  private static String octal(byte[] bytes) {
    StringBuilder escaped = new StringBuilder();
    for (byte b : bytes) {
      escaped.append("\\0%03o".formatted(b & 0xff));
    }
    return escaped.toString();
  }

  /** Passes on the device number of the mounted session: nothing else is unmounted from then on. */
  void recognize(String device) {
    try {
      OutputStream input = process.getOutputStream();
      input.write((device + "\n").getBytes(US_ASCII));
      input.flush();
    } catch (IOException e) {
      log.debug("the guard of the mount had already ended: {}", e.getMessage());
    }
  }

  ProcessHandle process() {
    return process.toHandle();
  }

  /** The session has ended: unmounts a mount that an abort may have left, and ends the guard. */
  @Override
  public void close() {
    try {
      process.getOutputStream().close();
      if (!process.waitFor(CLOSE_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (IOException e) {
      log.debug("the guard of the mount had already ended: {}", e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
