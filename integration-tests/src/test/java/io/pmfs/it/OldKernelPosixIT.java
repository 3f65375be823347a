package io.pmfs.it;

import io.pmfs.posix.OnRequest;

/** The suite with what a kernel 4.18 offers. */
@OnRequest("modes")
final class OldKernelPosixIT extends MountedPosixSuite {
  OldKernelPosixIT() {
    super("kernel", "--bridge", "kernel");
  }

  @Override
  void prepare(Installation made) {
    made.environment("PMFS_KERNEL_FLAGS", OldKernelIT.FLAGS);
  }

  @Override
  String lookAt(PosixTree tree) {
    Machine.requireRoot();
    return super.lookAt(tree);
  }
}
