package io.pmfs.cli.doctor;

import java.nio.file.Path;
import java.util.List;

/**
 * What the findings come to.
 *
 * @param isGood whether no finding failed
 * @param sentence one sentence for the user
 */
record Verdict(boolean isGood, String sentence) {
  static Verdict ofMachine(List<Finding> findings) {
    return of(findings, "pmfs can mount here", "pmfs cannot mount here");
  }

  /**
   * The verdict about a mount.
   *
   * @param mounted whether it is mounted now
   */
  static Verdict ofMount(Path mountpoint, boolean mounted, List<Finding> findings) {
    return mounted
        ? of(findings, mountpoint + " is healthy", mountpoint + " is not healthy")
        : of(findings, "pmfs can mount " + mountpoint, "pmfs cannot mount " + mountpoint);
  }

  private static Verdict of(List<Finding> findings, String good, String bad) {
    List<Finding> failed = findings.stream().filter(f -> f.grade() == Finding.Grade.FAIL).toList();
    if (failed.isEmpty()) {
      long warnings = findings.stream().filter(f -> f.grade() == Finding.Grade.WARN).count();
      return new Verdict(
          true, good + (warnings == 0 ? "" : ", with " + count(warnings, "warning")) + ".");
    }
    Finding first = failed.get(0);
    return new Verdict(
        false,
        "%s: %s; first mend %s: %s"
            .formatted(bad, count(failed.size(), "problem"), first.subject(), first.text()));
  }

  private static String count(long number, String what) {
    return number + " " + what + (number == 1 ? "" : "s");
  }
}
