package io.pmfs.daemon.requests;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.LongFunction;

/** A {@link Profile.Report} as a table for users. */
public final class ProfileTable {
  private static final int LEAST_KEY_WIDTH = 14;

  private ProfileTable() {}

  /**
   * Formats the lines of the table.
   *
   * @param size formats a number of bytes
   */
  public static List<String> of(Profile.Report report, LongFunction<String> size) {
    List<String> lines = new ArrayList<>();
    Profile.Row all = report.all();
    lines.add(
        String.format(
            Locale.ROOT,
            "%,d requests in %.1f s, %s",
            all.count(),
            report.seconds(),
            size.apply(all.bytes())));
    List<Profile.Row> rows = new ArrayList<>(report.rows());
    Profile.Row others = report.others();
    int width =
        Math.max(
            LEAST_KEY_WIDTH, rows.stream().mapToInt(row -> row.key().length()).max().orElse(0));
    // Long keys come last, so that the numbers stay visible.
    boolean isShort = width <= LEAST_KEY_WIDTH;
    lines.add(line(isShort, report.by(), HEADS));
    for (Profile.Row row : rows) {
      lines.add(line(isShort, row.key(), cells(row, size)));
    }
    if (others != null) {
      String name = String.format(Locale.ROOT, "others (%,d)", report.otherKeys());
      lines.add(line(isShort, name, cells(others, size)));
    }
    if (report.missing() > 0) {
      lines.add(
          String.format(
              Locale.ROOT, "%,d requests had no line and are missing here", report.missing()));
    }
    if (report.unreadable() > 0) {
      lines.add(String.format(Locale.ROOT, "%,d lines are malformed", report.unreadable()));
    }
    return lines;
  }

  private static final String[] HEADS = {
    "count", "per s", "bytes", "time", "mean", "p50", "p99", "longest", "failed"
  };

  private static String[] cells(Profile.Row row, LongFunction<String> size) {
    return new String[] {
      String.format(Locale.ROOT, "%,d", row.count()),
      String.format(Locale.ROOT, row.perSecond() < 99.95 ? "%.1f" : "%,.0f", row.perSecond()),
      size.apply(row.bytes()),
      String.format(Locale.ROOT, "%.1f %%", row.timeShare() * 100),
      time(row.meanMillis()),
      time(row.p50Millis()),
      time(row.p99Millis()),
      time(row.longestMillis()),
      String.format(Locale.ROOT, "%,d", row.failed())
    };
  }

  private static String time(double millis) {
    return millis < 999.5
        ? String.format(Locale.ROOT, millis < 9.995 ? "%.2f ms" : "%.0f ms", millis)
        : String.format(Locale.ROOT, "%.2f s", millis / 1e3);
  }

  private static String line(boolean isShort, String key, String[] cells) {
    StringBuilder numbers = new StringBuilder();
    int[] widths = {10, 9, 9, 8, 9, 9, 9, 9, 8};
    for (int i = 0; i < cells.length; i++) {
      numbers.append(String.format(Locale.ROOT, "%" + widths[i] + "s", cells[i]));
    }
    return isShort
        ? String.format(Locale.ROOT, "%-" + LEAST_KEY_WIDTH + "s%s", key, numbers)
        : numbers + "  " + key;
  }
}
