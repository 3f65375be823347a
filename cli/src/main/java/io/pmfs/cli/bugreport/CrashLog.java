package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.util.List;

/**
 * The JVM's crash log, {@code hs_err_pidN.log}, without the contents of memory (registers, what
 * they point to, the stack) and without the environment.
 */
final class CrashLog {
  private static final List<String> MEMORY =
      List.of("Register", "Top of Stack", "Stack slot to memory mapping", "Instructions");

  private static final String SECTION = "-------------";
  private static final String ENVIRONMENT = "Environment Variables:";

  private CrashLog() {}

  static byte[] withoutMemory(byte[] log) {
    StringBuilder kept = new StringBuilder();
    boolean isMemory = false;
    boolean isEnvironment = false;
    for (String line : new String(log, ISO_8859_1).split("\n", -1)) {
      if (line.startsWith(SECTION)) {
        isMemory = false;
      } else if (!isMemory && MEMORY.stream().anyMatch(line::startsWith)) {
        isMemory = true;
        kept.append("(memory: left out)\n");
      }
      if (line.startsWith(ENVIRONMENT)) {
        isEnvironment = true;
        kept.append("(environment: left out)\n");
      } else if (line.isBlank() || line.startsWith(SECTION)) {
        isEnvironment = false;
      }
      if (!isMemory && !isEnvironment) {
        kept.append(line).append('\n');
      }
    }
    return kept.toString().getBytes(ISO_8859_1);
  }
}
