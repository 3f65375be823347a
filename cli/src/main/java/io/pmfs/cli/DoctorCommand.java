package io.pmfs.cli;

import com.google.gson.GsonBuilder;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code pmfs doctor}: what this machine offers, and what to do about the rest. */
@Command(
    name = "doctor",
    description = "Tells what this machine offers. Exit status 5 if mounting is impossible here.%n",
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {"  pmfs doctor", "  pmfs doctor --json", "  pmfs doctor || echo use the source"})
final class DoctorCommand implements Callable<Integer> {
  private final Invocation invocation;

  @Option(names = "--json", description = "Print a JSON array of findings.")
  private boolean json;

  DoctorCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() {
    List<Finding> findings = new Examination(invocation.surroundings()).run();
    if (json) {
      invocation
          .out()
          .println(
              new GsonBuilder()
                  .setPrettyPrinting()
                  .disableHtmlEscaping()
                  .create()
                  .toJson(findings));
    } else {
      findings.forEach(f -> invocation.out().println(line(f)));
    }
    boolean impossible = findings.stream().anyMatch(f -> f.grade() == Finding.Grade.FAIL);
    return impossible ? ExitStatus.CANNOT : ExitStatus.DONE;
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
