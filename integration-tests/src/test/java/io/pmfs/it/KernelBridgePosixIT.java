package io.pmfs.it;

/** The suite through the kernel's own protocol. */
final class KernelBridgePosixIT extends MountedPosixSuite {
  KernelBridgePosixIT() {
    super("kernel", "--bridge", "kernel");
  }
}
