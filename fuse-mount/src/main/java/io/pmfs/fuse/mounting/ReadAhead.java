package io.pmfs.fuse.mounting;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How far the kernel reads ahead of a sequential reader. Its default for FUSE, 128 KiB, also bounds
 * the size of requests: with 1 MiB, sequential reads from a tier were 1.5 times as fast and random
 * reads equally fast (docs/results/read-path.md). Only root may set it, and the answer to INIT can
 * only lower it, so mounts by users keep the default.
 */
public final class ReadAhead {
  private static final Logger log = LoggerFactory.getLogger(ReadAhead.class);

  static final int KIBIBYTES = 1024;

  private ReadAhead() {}

  /**
   * Sets the read-ahead of a mount; it stays unchanged without permission.
   *
   * @param device the mount's device number, as in mountinfo; null if unknown
   */
  public static void set(@Nullable String device) {
    try {
      Path setting = Path.of("/sys/class/bdi/" + device + "/read_ahead_kb");
      Files.write(setting, Integer.toString(KIBIBYTES).getBytes(US_ASCII));
    } catch (IOException e) {
      log.debug("read-ahead stays at the kernel's default: {}", e.toString());
    }
  }
}
