package io.pmfs.fuse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether writes may bypass the kernel's page cache (FOPEN_DIRECT_IO). The kernel then copies half
 * as much, and does not request capabilities before the first write. A kernel that does not drop
 * cached pages after such a write shows old data to programs that have mapped the file.
 */
final class DirectWrites {
  private static final Logger log = LoggerFactory.getLogger(DirectWrites.class);

  private static final Path RELEASE = Path.of("/proc/sys/kernel/osrelease");
  private static final Pattern VERSION = Pattern.compile("(\\d+)\\.(\\d+).*", Pattern.DOTALL);

  /** Tested on 6.18 by WritableIT#life_ofAFileThatAnotherProcessMaps_*, not on older kernels. */
  private static final int MAJOR = 6;

  private static final int MINOR = 18;

  private DirectWrites() {}

  static boolean arePossible() {
    try {
      return arePossible(Files.readString(RELEASE));
    } catch (IOException e) {
      log.debug("{}: {}", RELEASE, e.getMessage());
      return false;
    }
  }

  static boolean arePossible(String release) {
    Matcher version = VERSION.matcher(release);
    if (!version.matches()) {
      return false;
    }
    int major = Integer.parseInt(version.group(1));
    return major > MAJOR || (major == MAJOR && Integer.parseInt(version.group(2)) >= MINOR);
  }
}
