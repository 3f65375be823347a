package io.pmfs.cli.doctor;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import io.pmfs.daemon.Invocation;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.places.Surroundings;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.MountOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs doctor}: checks this machine and suggests a remedy for each problem. */
@Command(
    name = "doctor",
    description = {
      "Checks what pmfs needs on this machine, and suggests a remedy for each problem. With a mount"
          + " point, also checks the source, tiers and cluster of that mount. Exit status 5 if this"
          + " machine cannot mount, or if that mount does not work; 4 if it works in part, because"
          + " a tier has failed, nodes of its cluster are missing or requests of readers failed.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs doctor",
      "  pmfs doctor /mnt/dataset          mounted, or with [mount.\"/mnt/dataset\"] in pmfs.toml",
      "  pmfs doctor --json",
      "  pmfs doctor || echo use the source"
    })
public final class DoctorCommand implements Callable<Integer> {
  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create();

  private final Invocation invocation;

  @Parameters(
      arity = "0..1",
      paramLabel = "MOUNTPOINT",
      description =
          "Also check source, tiers and cluster of this mount: those that its daemon uses, or, if"
              + " nothing is mounted there, those of the configuration file and the environment.")
  private @Nullable String mountpoint;

  @Option(names = "--config", paramLabel = "FILE", description = "Configuration file.")
  private @Nullable String config;

  @Option(names = "--json", description = "Print a JSON object with the verdict and the findings.")
  private boolean json;

  /** The output of --json. */
  private record Report(String verdict, List<Finding> findings) {}

  public DoctorCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() {
    List<Finding> findings = new ArrayList<>(new Examination(invocation.surroundings()).run());
    Verdict verdict;
    if (mountpoint == null) {
      verdict = Verdict.ofMachine(findings);
    } else {
      Path place = place(mountpoint);
      boolean mounted = addFindingsOfMount(place, mountpoint, findings);
      verdict = Verdict.ofMount(place, mounted, findings);
    }
    if (json) {
      invocation.showJson(json(verdict, findings));
    } else {
      findings.forEach(f -> invocation.show(line(f)));
      invocation.show(verdict.sentence());
    }
    return verdict.exitStatus();
  }

  /** The output of --json for a machine. */
  public static String json(Surroundings surroundings) {
    List<Finding> findings = new Examination(surroundings).run();
    return json(Verdict.ofMachine(findings), findings);
  }

  private static String json(Verdict verdict, List<Finding> findings) {
    return GSON.toJson(new Report(verdict.sentence(), findings));
  }

  private Path place(String text) {
    Surroundings surroundings = invocation.surroundings();
    return surroundings.resolveLinks(surroundings.resolve(text));
  }

  /**
   * Examines the mount, or the configuration for that mount point; returns whether it is mounted.
   */
  private boolean addFindingsOfMount(Path path, String place, List<Finding> findings) {
    Surroundings surroundings = invocation.surroundings();
    try {
      KnownMounts knownMounts = KnownMounts.open(surroundings, invocation::warn);
      DaemonRecord mounted = knownMounts.await(path);
      if (mounted != null) {
        findings.addAll(new MountedExamination(mounted, surroundings).run());
        return true;
      }
      MountTable.Mount mount = surroundings.mounts().at(path);
      if (mount != null && mount.isPmfs()) {
        findings.add(new Finding(Finding.Grade.FAIL, "mount", knownMounts.absence(path).line()));
        return true;
      }
      MountFailure detached = knownMounts.detachment(path);
      if (detached != null) {
        findings.add(new Finding(Finding.Grade.WARN, "mount", detached.line()));
      }
      Configuration configuration =
          Configuration.resolve(
              new Configuration.Request(Map.of(), config, null, place), surroundings);
      if (!configuration.settings().containsKey(MountOption.SOURCE)) {
        findings.add(
            new Finding(
                Finding.Grade.FAIL,
                "mount point",
                path + ": neither mounted by pmfs nor in pmfs.toml; pmfs status lists the mounts"));
        return false;
      }
      findings.addAll(
          MountExamination.beforeMounting(configuration.toSettings(surroundings), surroundings));
    } catch (MountFailure e) {
      findings.add(new Finding(Finding.Grade.FAIL, "configuration", e.line()));
    }
    return false;
  }

  private static String line(Finding finding) {
    return String.format(
        Locale.ROOT,
        "%-4s  %-18s %s",
        finding.grade().name().toLowerCase(Locale.ROOT),
        finding.subject(),
        finding.text());
  }
}
