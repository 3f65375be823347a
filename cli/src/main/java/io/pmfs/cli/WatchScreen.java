package io.pmfs.cli;

import io.pmfs.daemon.Invocation;
import java.io.PrintStream;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Where a block is shown again and again: on a terminal each is painted over the one before, which
 * stays when it ends; elsewhere one follows the other, with an empty line between them.
 */
final class WatchScreen implements AutoCloseable {
  private static final String ESCAPE = "\u001b[";

  /** Lines that are too long would make two of one, and the next block would not cover them. */
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
   * A screen with nothing on it.
   *
   * @param rows of the terminal; null if it is none
   */
  WatchScreen(PrintStream out, @Nullable Integer rows) {
    this.out = out;
    this.rows = rows;
  }

  /** By what the launcher found out. */
  static WatchScreen of(Invocation invocation) {
    String rows = invocation.surroundings().variable("PMFS_TERMINAL_ROWS");
    boolean isTerminal = rows != null && rows.matches("\\d{1,4}");
    return new WatchScreen(invocation.out(), isTerminal ? Integer.valueOf(rows) : null);
  }

  /** Shows the next block; says whether anybody is there to see it. */
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

  /** Leaves the terminal as it was found, below the last block. */
  @Override
  public void close() {
    if (rows != null && !isFirst) {
      out.print("\r" + TO_END_OF_SCREEN + SHOW_CURSOR + WRAP);
    }
    out.flush();
  }
}
