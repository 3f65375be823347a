package io.pmfs.fuse.mounting;

import io.pmfs.fuse.mounting.MountException.Reason;
import io.pmfs.fuse.system.DescriptorMessage;
import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.Spawn;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * Mounts for users: libfuse's set-user-id program opens /dev/fuse, mounts it and sends the
 * descriptor over the socket that _FUSE_COMMFD names.
 */
final class Fusermount {
  /** The program of libfuse 3 comes first; each can mount file systems of the other version. */
  static final List<String> PROGRAMS = List.of("fusermount3", "fusermount");

  private static final Duration KILL_PATIENCE = Duration.ofSeconds(1);
  private static final LibC LIBC = LibC.INSTANCE;

  private final MountSpec options;
  private final List<String> programs;

  /** Uses the first of these programs that exists. */
  Fusermount(MountSpec options, List<String> programs) {
    this.options = options;
    this.programs = programs;
  }

  /**
   * Mounts.
   *
   * @return the descriptor of the session, on /dev/fuse
   * @throws MountException with the program's output; then nothing is mounted
   */
  int mount(Duration timeout) throws MountException {
    for (String program : programs) {
      try {
        return mount(program, timeout);
      } catch (FsException e) {
        if (e.errno() != Errno.ENOENT) {
          throw failure(Reason.UNAVAILABLE, program + " cannot be run: " + e.errno(), e);
        }
      }
    }
    throw failure(
        Reason.UNAVAILABLE,
        String.join(" and ", programs)
            + " not found; install the package fuse3, or add its directory to PATH",
        null);
  }

  private int mount(String program, Duration timeout) throws FsException, MountException {
    int[] sockets = DescriptorMessage.sockets();
    Spawn child;
    try {
      child =
          Spawn.start(
              List.of(program, "-o", mountOptions(), "--", options.mountpoint().toString()),
              "_FUSE_COMMFD=" + Spawn.GIVEN,
              sockets[1]);
    } catch (FsException e) {
      LIBC.close(sockets[0]);
      throw e;
    } finally {
      LIBC.close(sockets[1]);
    }
    FutureTask<Integer> answer = new FutureTask<>(() -> answer(child, program, sockets[0]));
    try {
      DaemonThread.start("fusermount", answer);
    } catch (OutOfMemoryError e) {
      child.kill(); // Nobody would receive the descriptor, and the mount point would hang.
      LIBC.close(sockets[0]);
      child.output();
      child.waitFor();
      throw failure(Reason.FAILED, e.toString(), e);
    }
    return await(answer, child, program, timeout);
  }

  /** Waits until the program has ended. */
  private int answer(Spawn child, String program, int socket) throws FsException, MountException {
    int device;
    try {
      device = DescriptorMessage.receive(socket);
    } finally {
      LIBC.close(socket);
    }
    String output = child.output();
    int status = child.waitFor();
    if (device < 0) {
      throw refusal(program, status, output);
    }
    return device;
  }

  private int await(FutureTask<Integer> answer, Spawn child, String program, Duration timeout)
      throws MountException {
    boolean late = false;
    try {
      while (true) {
        try {
          Duration limit = late ? KILL_PATIENCE : timeout;
          return answer.get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
          if (late) {
            throw failure(Reason.FAILED, program + " still runs after SIGKILL", e);
          }
          late = true;
          child.kill();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      child.kill();
      throw failure(Reason.FAILED, "interrupted", e);
    } catch (ExecutionException e) {
      if (late) {
        throw failure(
            Reason.FAILED, program + " did not finish within " + timeout.toSeconds() + " s", e);
      }
      if (e.getCause() instanceof MountException refusal) {
        throw refusal;
      }
      throw failure(Reason.FAILED, program + ": " + e.getCause(), e);
    }
  }

  /** Turns the program's output into one line, adding a remedy if it contains none. */
  private MountException refusal(String program, int status, String output) {
    List<String> lines = output.lines().map(String::strip).filter(line -> !line.isEmpty()).toList();
    if (lines.isEmpty()) {
      return failure(
          Reason.FAILED, program + " ended with status " + status + " and no output", null);
    }
    String line = String.join("; ", lines);
    if (line.contains("mount failed: Operation not permitted")) {
      // The program is not set-user-id, or set-user-id has no effect here.
      return failure(
          Reason.UNAVAILABLE,
          line
              + "; "
              + program
              + " must be set-user-id root, and containers must allow set-user-id programs",
          null);
    }
    if (line.contains("could not determine username")) {
      return failure(
          Reason.UNAVAILABLE,
          line + "; add this user to /etc/passwd, also in a container, or let root mount",
          null);
    }
    boolean device = line.contains("/dev/fuse") || line.contains("device not found");
    return failure(device ? Reason.UNAVAILABLE : Reason.FAILED, line, null);
  }

  private MountException failure(Reason reason, String why, @Nullable Throwable cause) {
    return new MountException(reason, options.mountpoint() + " cannot be mounted: " + why, cause);
  }

  private String mountOptions() {
    return options.access()
        + (options.noExec() ? ",noexec" : "")
        + ",nosuid,nodev,default_permissions,max_read="
        + options.maxReadBytes()
        + (options.allowOther() ? ",allow_other" : "")
        + ",subtype=pmfs,fsname="
        + options.source().replace("\\", "\\\\").replace(",", "\\,");
  }

  /**
   * Aborts the session of one of the user's own mounts, which the kernel permits: waiting readers
   * get an error.
   *
   * @param device the mount's device number, as in mountinfo
   */
  static void abort(String device) throws IOException {
    String number = device.substring(device.indexOf(':') + 1);
    Files.write(Path.of("/sys/fs/fuse/connections/" + number + "/abort"), new byte[] {'1'});
  }
}
