package io.pmfs.fuse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether the kernel may pass what programs write to the daemon without its page cache
 * (FOPEN_DIRECT_IO). It then copies half as much, and does not ask for capabilities before the
 * first write. But a kernel that does not drop cached pages after such a write shows old data to
 * programs that have mapped the file.
 */
final class DirectWrites {
  private static final Logger log = LoggerFactory.getLogger(DirectWrites.class);

  private static final Path RELEASE = Path.of("/proc/sys/kernel/osrelease");
  private static final Pattern VERSION = Pattern.compile("(\\d+)\\.(\\d+).*", Pattern.DOTALL);

  /** WritableIT#life_ofAFileThatAnotherProcessMaps_* passes on 6.18; older ones were not tried. */
  private static final int MAJOR = 6;

  private static final int MINOR = 18;

  private DirectWrites() {}

  /** Whether this machine's kernel drops the pages. */
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
