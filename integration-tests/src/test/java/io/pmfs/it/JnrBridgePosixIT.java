package io.pmfs.it;

/** The suite through jnr-fuse and libfuse 2. */
final class JnrBridgePosixIT extends MountedPosixSuite {
  JnrBridgePosixIT() {
    super("jnr", "--bridge", "jnr");
  }
}
