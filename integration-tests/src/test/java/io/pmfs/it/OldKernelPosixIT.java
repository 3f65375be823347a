package io.pmfs.it;

/** The suite with what a kernel 4.18 offers. */
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
