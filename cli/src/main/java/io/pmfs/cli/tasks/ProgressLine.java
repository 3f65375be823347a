package io.pmfs.cli.tasks;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.daemon.report.TaskReport;
import io.pmfs.machine.ByteSize;
import io.pmfs.metadata.PathText;
import java.text.NumberFormat;
import java.util.Locale;

/**
 * The progress of a task in one line of a terminal: a bar, as many figures as fit beside it, and
 * the directory if there is room. A narrow line has no bar.
 */
final class ProgressLine {
  private static final int LEAST_BAR = 15;
  private static final int WIDEST_BAR = 40;
  private static final int LEAST_DIRECTORY = 12;
  private static final String[] EIGHTHS = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

  private final TaskReport report;
  private final int columns;
  private final String head;

  private ProgressLine(TaskReport report, int columns) {
    this.report = report;
    this.columns = columns;
    this.head =
        report.totalsAreFinal()
            ? "%s %d%%"
                .formatted(PathText.printable(report.activity()), (int) (report.fraction() * 100))
            : PathText.printable(report.activity());
  }

  /** The line, padded with blanks to the given width. */
  static String of(TaskReport report, int columns) {
    String line = new ProgressLine(report, columns).text();
    // Not trusted, because the daemon may be another user's.
    return PathText.printable(line) + " ".repeat(Math.max(0, columns - length(line)));
  }

  private String text() {
    String small = small(true);
    if (report.totalsAreFinal()) {
      for (String figures : new String[] {TaskLines.figures(report), small, small(false)}) {
        int room = columns - length(head) - 4 - length(figures);
        if (room >= LEAST_BAR) {
          int width = Math.min(room, WIDEST_BAR);
          return head + " |" + bar(width) + "| " + figures + directory(room - width);
        }
      }
    }
    for (String figures : new String[] {TaskLines.figures(report), small}) {
      int room = columns - length(head) - 2 - length(figures);
      if (room >= 0) {
        return head + ": " + figures + directory(room);
      }
    }
    String line = head + ": " + small(false);
    return line.substring(0, Math.min(line.length(), columns));
  }

  private String bar(int width) {
    int eighths = (int) (report.fraction() * width * 8);
    String done = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    return done + " ".repeat(width - done.length());
  }

  /** The figures of {@link TaskLines#figures}, abbreviated. */
  private String small(boolean withFiles) {
    String more = report.totalsAreFinal() ? "" : "+";
    String files =
        "%s/%s%s files".formatted(count(report.files()), count(report.totalFiles()), more);
    StringBuilder figures = new StringBuilder();
    if (report.countsBytes()) {
      figures.append(size(report.bytes()) + "/" + size(report.totalBytes()) + more);
      figures.append(" " + size(TaskLines.bytesPerSecond(report)) + "/s");
    } else {
      figures.append(files);
    }
    String left = TaskLines.timeLeft(report);
    if (!left.isEmpty()) {
      figures.append(" " + left + " left");
    }
    return figures + (withFiles && report.countsBytes() ? " " + files : "");
  }

  private static String size(long bytes) {
    return ByteSize.format(bytes).replace(" ", "").replace("iB", "");
  }

  private static String count(long number) {
    NumberFormat format =
        NumberFormat.getCompactNumberInstance(Locale.US, NumberFormat.Style.SHORT);
    format.setMaximumFractionDigits(number < 100_000_000 ? 1 : 0);
    return format.format(number);
  }

  private String directory(int room) {
    String name = PathText.printable(report.directory());
    int limit = room - ", in ".length();
    if (name.isEmpty() || limit < LEAST_DIRECTORY) {
      return "";
    }
    if (length(name) <= limit) {
      return ", in " + name;
    }
    while (length(name) > limit - "...".length()) {
      name = name.substring(name.offsetByCodePoints(0, 1));
    }
    return ", in ..." + name;
  }

  /** An upper bound of a text's columns: no character has more columns than bytes in UTF-8. */
  private static int length(String text) {
    return text.codePoints().allMatch(c -> c < 0x80 || (c >= 0x2580 && c <= 0x259F))
        ? text.length()
        : text.getBytes(UTF_8).length;
  }
}
