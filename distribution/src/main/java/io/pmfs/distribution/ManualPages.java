package io.pmfs.distribution;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine;

/** All manual pages: one for each command, and mount.pmfs(8). */
final class ManualPages {
  private static final String HELPER = "mount.pmfs";

  private final List<CommandLine> commands;
  private final String helper;
  private final CommonSections common;

  /**
   * The pages of the commands.
   *
   * @param helper the sections of mount.pmfs(8) that it has for itself, in the macros of man(7)
   * @param configuration the text of docs/configuration.md
   */
  ManualPages(CommandLine root, String helper, String configuration) {
    this.commands = ManualPage.commandsOf(root);
    this.helper = helper;
    List<String> names = new ArrayList<>();
    commands.forEach(each -> names.add(ManualPage.nameOf(each) + "(1)"));
    names.add(HELPER + "(8)");
    this.common = new CommonSections(names, Variable.onPage(configuration));
  }

  /** The source of each page by the name of its file, such as {@code pmfs-mount.1}. */
  Map<String, String> write(String date, String version) {
    Map<String, String> pages = new LinkedHashMap<>();
    for (CommandLine each : commands) {
      pages.put(ManualPage.nameOf(each) + ".1", ManualPage.of(each, date, version, common));
    }
    Roff page = new Roff().title(HELPER, "8", date, version).verbatim(helper);
    common.environment(page);
    common.files(page);
    common.seeAlso(page, HELPER + "(8)");
    pages.put(HELPER + ".8", page.toString());
    return pages;
  }
}
