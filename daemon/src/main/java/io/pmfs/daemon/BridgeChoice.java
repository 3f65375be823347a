package io.pmfs.daemon;

import io.pmfs.settings.Surroundings;

/**
 * Which bridge a mount takes here, and why.
 *
 * @param name {@code kernel} or {@code jnr}
 */
public record BridgeChoice(String name, String reason) {
  /** What the value of --bridge comes down to. */
  public static BridgeChoice of(String option, Surroundings surroundings) {
    if (!option.equals("auto")) {
      return new BridgeChoice(option, "as asked for");
    }
    if (surroundings.isRoot()) {
      return new BridgeChoice("kernel", "the default; root mounts by mount(2)");
    }
    MachineChecks machine = new MachineChecks(surroundings);
    String device = machine.device();
    String problem = device == null ? machine.permission() : device;
    return problem == null
        ? new BridgeChoice(
            "kernel", "the default; users mount by " + ExternalUnmount.findFusermount(surroundings))
        : new BridgeChoice("jnr", "not kernel: " + problem);
  }

  public boolean isKernel() {
    return name.equals("kernel");
  }
}
