package io.pmfs.settings;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * How the kernel is answered, and on whose behalf.
 *
 * @param kind {@code auto}, {@code kernel} or {@code jnr}
 * @param readMode {@code auto}, {@code page-cache} or {@code passthrough}
 * @param allowOther whether users other than the mounting one get in
 * @param user whose process serves a mount that root made; null for the process's own user
 * @param passthroughCapability whether that process was to keep CAP_SYS_ADMIN
 * @param readyTimeout how long the probe through the mount may take
 */
public record BridgeSettings(
    String kind,
    String readMode,
    boolean allowOther,
    @Nullable String user,
    boolean passthroughCapability,
    Duration readyTimeout) {
  static BridgeSettings of(OptionValues values) throws MountFailure {
    return new BridgeSettings(
        values.get(MountOption.BRIDGE),
        values.get(MountOption.READ_MODE),
        values.get(MountOption.ALLOW_OTHER),
        values.find(MountOption.USER),
        values.get(MountOption.PASSTHROUGH_CAPABILITY),
        values.get(MountOption.READY_TIMEOUT));
  }
}
