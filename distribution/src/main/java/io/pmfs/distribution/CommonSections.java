package io.pmfs.distribution;

import io.pmfs.machine.ExitStatus;
import io.pmfs.settings.MountOption;
import java.util.List;
import java.util.stream.Collectors;
import picocli.CommandLine.Model.CommandSpec;

/** The sections that the manual pages have in common. */
final class CommonSections {
  /** The pages' names, each with its section of the manual. */
  private final List<String> pages;

  private final List<Variable> variables;

  CommonSections(List<String> pages, List<Variable> variables) {
    this.pages = pages;
    this.variables = variables;
  }

  /** The statuses of a command; what its help says of one replaces the general text. */
  static void exitStatus(Roff page, CommandSpec command) {
    page.heading("EXIT STATUS");
    if (command.name().equals("run")) {
      ExitStatus.MEANINGS_OF_RUN.forEach(each -> page.entry(each.status(), "", each.text()));
      page.paragraph("The statuses of all other commands are in pmfs(1).");
      return;
    }
    boolean ofOne = command.parent() != null;
    for (ExitStatus.Meaning each : ExitStatus.MEANINGS) {
      String own = ofOne ? command.usageMessage().exitCodeList().get(each.status()) : null;
      page.entry(each.status(), "", own == null ? each.text() : own);
    }
  }

  void environment(Roff page) {
    page.heading("ENVIRONMENT");
    page.entry(
        MountOption.options().stream().map(MountOption::variable).collect(Collectors.joining(", ")),
        "",
        "Each sets the option of pmfs-mount(1) that has the rest of its name in lower case:"
            + " PMFS_FETCH_THREADS sets --fetch-threads. The command line comes first.");
    variables.forEach(each -> page.entry(each.name(), "", each.meaning()));
  }

  void files(Roff page) {
    page.heading("FILES");
    page.entry(
        "$XDG_CONFIG_HOME/pmfs/pmfs.toml, ~/.config/pmfs/pmfs.toml, /etc/pmfs/pmfs.toml",
        "",
        "The configuration, from the first of these files that exists. --config or PMFS_CONFIG"
            + " names another one.");
    page.entry(
        "/run/pmfs, /tmp/pmfs-UID",
        "",
        "The runtime directory of root and of other users, with control sockets, locks and session"
            + " files. PMFS_RUNTIME_DIR names another one.");
    page.entry(
        "$PMFS_CACHE_DIR, $XDG_CACHE_HOME/pmfs, ~/.cache/pmfs, $TMPDIR/pmfs-$USER,"
            + " /var/tmp/pmfs-$USER",
        "",
        "Copies and state without --tier: in the first of these directories that lies on a local"
            + " disk and can be written.");
    page.entry(
        "/var/log/pmfs/NAME.log",
        "",
        "The log of a daemon that root started. Other logs lie in the runtime directory. NAME is"
            + " the last name of the mount point and a hash of its path. --log-file names another"
            + " file.");
  }

  void seeAlso(Roff page, String own) {
    page.heading("SEE ALSO");
    page.paragraph(
        pages.stream().filter(name -> !name.equals(own)).collect(Collectors.joining(", ")));
    page.paragraph(
        "docs/README.md in /usr/share/doc/pmfs, or in share/doc/pmfs where the tar.gz was unpacked,"
            + " lists all pages of the documentation.");
  }
}
