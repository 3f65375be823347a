package io.pmfs.daemon.process;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountPoint;
import io.pmfs.fuse.mounting.MountRight;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.NativeText;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Unmounts what another process has mounted: by descriptors for root, by fusermount otherwise. */
public final class ExternalUnmount {
  private static final int MAX_SECONDS = 20;

  private ExternalUnmount() {}

  /** Unmounts {@code wanted}. Does nothing if its mount point is empty or has another mount. */
  public static void run(MountTable.Mount wanted, boolean lazy, Surroundings surroundings)
      throws MountFailure {
    Path mountpoint = wanted.mountpoint();
    if (!wanted.isSameAs(surroundings.mounts().at(mountpoint))) {
      return;
    }
    if (surroundings.isRoot() || MountRight.hasCapability(surroundings.root())) {
      unmountAsRoot(wanted, lazy);
      return;
    }
    Path fusermount = findFusermount(surroundings);
    if (fusermount == null) {
      throw new MountFailure(
          ExitStatus.CANNOT,
          mountpoint + ": cannot be unmounted: there is no fusermount; install the package fuse3");
    }
    String how = lazy ? "-uz" : "-u";
    try {
      execute(mountpoint, List.of(fusermount.toString(), how, "--", mountpoint.toString()));
    } catch (MountFailure e) {
      // The guard of a dead daemon's mount may have unmounted it first.
      if (wanted.isSameAs(surroundings.mounts().at(mountpoint))) {
        throw e;
      }
    }
  }

  private static void unmountAsRoot(MountTable.Mount wanted, boolean lazy) throws MountFailure {
    try (MountPoint place = MountPoint.open(wanted.mountpoint())) {
      place.unmount(wanted.device(), lazy);
    } catch (MountException e) {
      boolean busy = e.reason() == MountException.Reason.BUSY;
      throw new MountFailure(
          ExitStatus.FAILED, busy ? MountFailure.BUSY : String.valueOf(e.getMessage()), e);
    }
  }

  private static void execute(Path mountpoint, List<String> command) throws MountFailure {
    try {
      Process process = NativeText.process(command).redirectErrorStream(true).start();
      process.getOutputStream().close();
      if (!process.waitFor(MAX_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        throw new MountFailure(
            ExitStatus.FAILED, mountpoint + ": " + command.get(0) + " has not returned");
      }
      String output = new String(process.getInputStream().readNBytes(4096), UTF_8).strip();
      if (process.exitValue() != 0) {
        boolean busy = output.contains("busy");
        throw new MountFailure(
            ExitStatus.FAILED,
            busy ? MountFailure.BUSY : mountpoint + ": not unmounted: " + output);
      }
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.FAILED, mountpoint + ": " + command.get(0) + ": " + e.getMessage(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new MountFailure(ExitStatus.FAILED, mountpoint + ": interrupted", e);
    }
  }

  /** The first fusermount3 or fusermount in PATH, or null. */
  public static @Nullable Path findFusermount(Surroundings surroundings) {
    Path newer = surroundings.findProgram("fusermount3");
    return newer != null ? newer : surroundings.findProgram("fusermount");
  }
}
