package io.pmfs.cli.doctor;

import com.google.gson.Gson;
import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.MountClient;
import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.KernelReport;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.places.Surroundings;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Checks an existing mount for {@code pmfs doctor}, with the settings that its daemon reports; the
 * configuration file and the environment may have changed since.
 */
final class MountedExamination {
  private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);
  private static final int HTTP_OK = 200;

  private final DaemonRecord mount;
  private final Surroundings surroundings;

  MountedExamination(DaemonRecord mount, Surroundings surroundings) {
    this.mount = mount;
    this.surroundings = surroundings;
  }

  List<Finding> run() {
    List<Finding> findings = new ArrayList<>();
    try {
      StatusReport status = new Gson().fromJson(ask("/status"), StatusReport.class);
      if (status == null) {
        throw new IOException("its answer is empty");
      }
      MountSettings settings = SessionSettings.ofReport(ask("/configuration"), surroundings);
      findings.add(
          new Finding(
              Finding.Grade.OK,
              "mount",
              "%s: served by pid %d".formatted(mount.mountpoint(), mount.pid())));
      if (settings == null) {
        findings.add(
            new Finding(
                Finding.Grade.WARN,
                "mount",
                mount.mountpoint() + ": its daemon is older than this command: pmfs upgrade"));
        return findings;
      }
      findings.addAll(MountExamination.ofMount(settings, surroundings, status.dataset().tiers()));
      addNumbers(status, findings);
      addFailures(status, findings);
      String absence = status.source().sourceAbsence();
      if (status.outputs() != null && absence != null) {
        findings.add(
            new Finding(
                Finding.Grade.PART,
                "source",
                absence + "; requests that this node can answer alone continue, all others wait"));
      }
      ClusterReport cluster = status.cluster();
      if (cluster != null) {
        findings.addAll(ClusterExamination.ofMembers(cluster));
      }
      OutputsReport.Away away = status.outputs() == null ? null : status.outputs().away();
      if (away != null) {
        findings.add(
            new Finding(Finding.Grade.PART, "cluster node", away.who() + "; " + away.remedy()));
      }
    } catch (IOException | MountFailure | RuntimeException e) {
      // The answer of another user's daemon is not trusted.
      String why =
          e instanceof MountFailure failure
              ? failure.line()
              : e instanceof IOException ? Reason.of(e) : "its answer is malformed";
      findings.add(
          new Finding(
              Finding.Grade.FAIL,
              "mount",
              "%s: pid %d: %s; see %s"
                  .formatted(mount.mountpoint(), mount.pid(), why, mount.logFile())));
    }
    return findings;
  }

  private static void addNumbers(StatusReport status, List<Finding> findings) {
    Long renumbered = status.source().renumberedFiles();
    if (renumbered != null) {
      findings.add(
          new Finding(
              Finding.Grade.OK,
              "inode numbers",
              renumbered == 0
                  ? "stable at the source, as far as known"
                  : String.format(
                      Locale.ROOT,
                      "they change at the source (%,d changes seen), so files are identified by"
                          + " path, size and times, and each name of a hard-linked file may count"
                          + " as a separate file",
                      renumbered)));
    }
  }

  private static void addFailures(StatusReport status, List<Finding> findings) {
    KernelReport.Failures failures = status.kernel().failures();
    if (failures != null && failures.lately() > 0) {
      findings.add(
          new Finding(
              Finding.Grade.PART,
              "errors",
              String.format(
                  Locale.ROOT,
                  "%,d requests of readers failed in the last ten minutes; pmfs status shows the"
                      + " last one",
                  failures.lately())));
    }
  }

  private String ask(String resource) throws IOException, MountFailure {
    ControlClient.Answer answer =
        new MountClient(mount, surroundings).ask(HttpMethod.GET, resource, ANSWER_LIMIT);
    if (answer.status() != HTTP_OK) {
      throw new IOException(answer.error());
    }
    return answer.body();
  }
}
