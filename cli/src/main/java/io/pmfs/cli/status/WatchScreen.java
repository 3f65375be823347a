package io.pmfs.cli.status;

import io.pmfs.daemon.Invocation;
import java.io.PrintStream;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Shows one block after another. On a terminal each replaces the previous one; elsewhere an empty
 * line separates them.
 */
final class WatchScreen implements AutoCloseable {
  private static final String ESCAPE = "\u001b[";

  /** Disables wrapping, because the next block would not overwrite wrapped lines. */
  private static final String NO_WRAP = ESCAPE + "?7l";

  private static final String WRAP = ESCAPE + "?7h";
  private static final String HIDE_CURSOR = ESCAPE + "?25l";
  private static final String SHOW_CURSOR = ESCAPE + "?25h";
  private static final String TO_END_OF_LINE = ESCAPE + "K";
  private static final String TO_END_OF_SCREEN = ESCAPE + "J";

  private final PrintStream out;
  private final @Nullable Integer rows;
  private int painted;
  private boolean isFirst = true;

  /**
   * @param rows the height of the terminal; null if the output is not a terminal
   */
  WatchScreen(PrintStream out, @Nullable Integer rows) {
    this.out = out;
    this.rows = rows;
  }

  /** The screen that the launcher detected. */
  static WatchScreen of(Invocation invocation) {
    String rows = invocation.surroundings().variable("PMFS_TERMINAL_ROWS");
    boolean isTerminal = rows != null && rows.matches("\\d{1,4}");
    return new WatchScreen(invocation.out(), isTerminal ? Integer.valueOf(rows) : null);
  }

  /** Shows the next block; returns whether the output is still open. */
  boolean show(List<String> lines) {
    if (rows == null) {
      if (!isFirst) {
        out.println();
      }
      lines.forEach(out::println);
    } else {
      paint(lines.subList(0, Math.min(lines.size(), Math.max(1, rows - 1))));
    }
    isFirst = false;
    return !out.checkError();
  }

  private void paint(List<String> lines) {
    StringBuilder text = new StringBuilder(isFirst ? NO_WRAP + HIDE_CURSOR : "");
    if (painted > 0) {
      text.append(ESCAPE).append(painted).append('A');
    }
    for (String line : lines) {
      text.append('\r').append(line).append(TO_END_OF_LINE).append('\n');
    }
    out.print(text.append(TO_END_OF_SCREEN));
    painted = lines.size();
  }

  /** Restores the terminal's modes, with the cursor below the last block. */
  @Override
  public void close() {
    if (rows != null && !isFirst) {
      out.print("\r" + TO_END_OF_SCREEN + SHOW_CURSOR + WRAP);
    }
    out.flush();
  }
}
