package io.pmfs.fuse.jnr;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.Bridge;
import io.pmfs.fuse.BridgeProvider;
import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountSpec;

/** Makes the bridge of {@code --bridge jnr}. Public because it is loaded by name. */
public final class JnrBridgeProvider implements BridgeProvider {
  @Override
  public String name() {
    return JnrBridge.NAME;
  }

  @Override
  public Bridge open(PmfsFileSystem fileSystem, MountSpec options) throws MountException {
    return new JnrBridge(fileSystem, options);
  }
}
