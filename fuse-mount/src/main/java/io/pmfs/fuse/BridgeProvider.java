package io.pmfs.fuse;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountException.Reason;
import io.pmfs.fuse.mounting.MountSpec;
import java.util.ServiceLoader;

/** Makes bridges of a kind besides {@link KernelBridge}, in a module that no other one imports. */
public interface BridgeProvider {
  /** What {@code --bridge} calls them. */
  String name();

  /**
   * Makes a bridge.
   *
   * @throws MountException if this machine lacks what the bridge needs
   */
  Bridge open(PmfsFileSystem fileSystem, MountSpec options) throws MountException;

  /**
   * The provider of that name on the class path.
   *
   * @throws MountException if there is none
   */
  static BridgeProvider of(String name) throws MountException {
    for (BridgeProvider each : ServiceLoader.load(BridgeProvider.class)) {
      if (each.name().equals(name)) {
        return each;
      }
    }
    throw new MountException(
        Reason.UNAVAILABLE,
        "--bridge %s: not part of this installation; leave out --bridge".formatted(name),
        null);
  }
}
