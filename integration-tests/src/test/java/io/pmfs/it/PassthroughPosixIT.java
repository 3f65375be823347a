package io.pmfs.it;

/** The suite with files that the kernel reads from the tier by itself. */
final class PassthroughPosixIT extends MountedPosixSuite {
  PassthroughPosixIT() {
    super("kernel", "--bridge", "kernel", "--read-mode", "passthrough");
  }

  @Override
  String lookAt(PosixTree tree) {
    Machine.requireRoot();
    return super.lookAt(tree);
  }
}
