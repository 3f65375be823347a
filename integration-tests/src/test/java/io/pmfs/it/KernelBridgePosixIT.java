package io.pmfs.it;

import io.pmfs.posix.OnRequest;

/** The suite through the kernel's own protocol. */
@OnRequest("modes")
final class KernelBridgePosixIT extends MountedPosixSuite {
  KernelBridgePosixIT() {
    super("kernel", "--bridge", "kernel");
  }
}
