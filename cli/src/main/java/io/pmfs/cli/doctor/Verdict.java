package io.pmfs.cli.doctor;

import io.pmfs.machine.ExitStatus;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;

/** The summary of the findings. */
record Verdict(int exitStatus, String sentence) {
  static Verdict ofMachine(List<Finding> findings) {
    return of(findings, "pmfs can mount here", "pmfs cannot mount here");
  }

  static Verdict ofMount(Path mountpoint, boolean mounted, List<Finding> findings) {
    return mounted
        ? of(findings, mountpoint + " is healthy", mountpoint + " is not healthy")
        : of(findings, "pmfs can mount " + mountpoint, "pmfs cannot mount " + mountpoint);
  }

  private static Verdict of(List<Finding> findings, String good, String bad) {
    List<Finding> failed = having(Finding.Grade.FAIL, findings);
    List<Finding> partly = having(Finding.Grade.PART, findings);
    if (failed.isEmpty() && !partly.isEmpty()) {
      return new Verdict(
          ExitStatus.PARTLY,
          "%s: %s: %s: %s"
              .formatted(
                  bad,
                  "it works in part",
                  partly.get(0).subject(),
                  partly.stream().map(Finding::text).collect(Collectors.joining("; "))));
    }
    if (failed.isEmpty()) {
      long warnings = findings.stream().filter(f -> f.grade() == Finding.Grade.WARN).count();
      return new Verdict(
          ExitStatus.DONE,
          good + (warnings == 0 ? "" : ", with " + count(warnings, "warning")) + ".");
    }
    Finding first = failed.get(0);
    return new Verdict(
        ExitStatus.CANNOT,
        "%s: %s; first fix %s: %s"
            .formatted(bad, count(failed.size(), "problem"), first.subject(), first.text()));
  }

  private static List<Finding> having(Finding.Grade grade, List<Finding> findings) {
    return findings.stream().filter(finding -> finding.grade() == grade).toList();
  }

  private static String count(long number, String what) {
    return number + " " + what + (number == 1 ? "" : "s");
  }
}
