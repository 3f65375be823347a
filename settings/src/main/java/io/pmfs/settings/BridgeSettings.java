package io.pmfs.settings;

import io.pmfs.machine.MountFailure;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * How, and as which user, pmfs answers the kernel. *
 *
 * @param kind {@code auto}, {@code kernel} or {@code jnr}
 * @param readMode {@code auto}, {@code page-cache} or {@code passthrough}
 * @param allowOther whether users other than the mounting one have access
 * @param user the user whose process serves a mount that root made; null for the process's own user
 * @param passthroughCapability whether that user's process keeps CAP_SYS_ADMIN
 * @param linger how long the daemon stays after the last unmount; zero to end at once
 * @param readyTimeout the time limit for the probe through the mount
 */
public record BridgeSettings(
    String kind,
    String readMode,
    boolean allowOther,
    @Nullable String user,
    boolean passthroughCapability,
    Duration linger,
    Duration readyTimeout) {
  static BridgeSettings of(OptionValues values) throws MountFailure {
    return new BridgeSettings(
        values.get(MountOption.BRIDGE),
        values.get(MountOption.READ_MODE),
        values.get(MountOption.ALLOW_OTHER),
        values.find(MountOption.USER),
        values.get(MountOption.PASSTHROUGH_CAPABILITY),
        values.get(MountOption.LINGER),
        values.get(MountOption.READY_TIMEOUT));
  }
}
