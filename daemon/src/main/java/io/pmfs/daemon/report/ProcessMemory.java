package io.pmfs.daemon.report;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The memory that this process uses. */
final class ProcessMemory {

  private ProcessMemory() {}

  /** Resident bytes; 0 if the kernel does not report them. */
  static long residentBytes() {
    try {
      for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
        if (line.startsWith("VmRSS:")) {
          return Long.parseLong(line.replaceAll("\\D", "")) << 10;
        }
      }
    } catch (IOException | NumberFormatException e) {
      return 0;
    }
    return 0;
  }
}
