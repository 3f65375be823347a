package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** The variables of an environment that a report shows: known ones, and no others. */
final class Environment {
  private static final Set<String> OF_THE_SYSTEM =
      Set.of(
          "HOME",
          "JAVA_HOME",
          "LANG",
          "LC_ALL",
          "LD_LIBRARY_PATH",
          "LOGNAME",
          "MALLOC_ARENA_MAX",
          "PATH",
          "SLURM_JOB_ID",
          "SLURM_JOB_NODELIST",
          "TERM",
          "TMPDIR",
          "TZ",
          "USER",
          "XDG_CACHE_HOME",
          "XDG_CONFIG_HOME",
          "XDG_RUNTIME_DIR");

  private Environment() {}

  /** One line per variable, and the number of those that are not shown. */
  static String text(Map<String, String> variables, Set<String> ofPmfs) {
    StringBuilder text = new StringBuilder();
    int hidden = 0;
    for (Map.Entry<String, String> variable : new TreeMap<>(variables).entrySet()) {
      String name = variable.getKey();
      if (!OF_THE_SYSTEM.contains(name) && !ofPmfs.contains(name)) {
        hidden++;
      } else if (Redaction.looksSecret(name)) {
        text.append(name).append('=').append(Redaction.REMOVED).append('\n');
      } else {
        text.append(name).append('=').append(variable.getValue().replace('\n', ' ')).append('\n');
      }
    }
    return text.append("and ").append(hidden).append(" others, not shown\n").toString();
  }

  /** Parses {@code /proc/PID/environ}, proc(5). */
  static Map<String, String> parse(byte[] block) {
    Map<String, String> variables = new HashMap<>();
    for (String line : new String(block, UTF_8).split("\0", -1)) {
      int equals = line.indexOf('=');
      if (equals > 0) {
        variables.put(line.substring(0, equals), line.substring(equals + 1));
      }
    }
    return variables;
  }
}
