package io.pmfs.daemon.process;

import io.pmfs.fuse.mounting.MountException;
import io.pmfs.machine.Reason;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Path;

/**
 * The bridge that a mount uses on this machine, and why.
 *
 * @param name {@code kernel} or {@code jnr}
 */
public record BridgeChoice(String name, String reason) {
  /** Chooses the bridge for a value of --bridge. */
  public static BridgeChoice of(String option, Surroundings surroundings) {
    if (!option.equals("auto")) {
      return new BridgeChoice(option, "as requested");
    }
    if (surroundings.isRoot()) {
      return new BridgeChoice("kernel", "the default; root mounts with mount(2)");
    }
    MachineChecks machine = new MachineChecks(surroundings);
    if (machine.canMount()) {
      return new BridgeChoice("kernel", "the default; mount(2) in a namespace of the user");
    }
    String device = machine.device();
    String problem = device == null ? machine.permission() : device;
    return problem == null
        ? new BridgeChoice(
            "kernel",
            "the default; users mount with " + ExternalUnmount.findFusermount(surroundings))
        : new BridgeChoice("jnr", "not kernel: " + problem);
  }

  public boolean isKernel() {
    return name.equals("kernel");
  }

  /**
   * Libfuse 2 mounts and unmounts by path, so for root the path must be one that no other user can
   * change.
   */
  public void check(Path mountpoint, Surroundings surroundings) throws MountException {
    try {
      if (!isKernel() && surroundings.isRoot()) {
        OwnPath.ofProcess().check(mountpoint);
      }
    } catch (IOException e) {
      throw new MountException(
          MountException.Reason.FAILED,
          mountpoint
              + ": mount point: not safe for root with --bridge jnr: "
              + Reason.of(e)
              + "; leave out --bridge",
          e);
    }
  }
}
