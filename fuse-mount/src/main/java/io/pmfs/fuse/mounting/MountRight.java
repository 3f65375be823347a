package io.pmfs.fuse.mounting;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.fuse.system.LibC;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Whether this process may call mount(2) and umount2(2): as root, or with CAP_SYS_ADMIN in a user
 * namespace of its user, where {@code pmfs run --private} mounts (docs/decisions/0070).
 */
public final class MountRight {
  private static final int CAP_SYS_ADMIN = 21;

  private MountRight() {}

  /** Reads it once, because no process of pmfs changes its capabilities. */
  private static final class OfProcess {
    private static final boolean HELD = LibC.INSTANCE.geteuid() == 0 || hasCapability(Path.of("/"));
  }

  public static boolean isHeld() {
    return OfProcess.HELD;
  }

  /**
   * Whether /proc/self/status shows CAP_SYS_ADMIN, which root in a container may lack.
   *
   * @param root / except in tests
   */
  public static boolean hasCapability(Path root) {
    try {
      for (String line : Files.readAllLines(root.resolve("proc/self/status"), ISO_8859_1)) {
        if (line.startsWith("CapEff:")) {
          return (Long.parseUnsignedLong(line.substring(7).strip(), 16) >> CAP_SYS_ADMIN & 1) == 1;
        }
      }
    } catch (IOException | NumberFormatException e) {
      return false;
    }
    return false;
  }
}
