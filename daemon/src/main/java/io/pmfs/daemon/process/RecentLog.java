package io.pmfs.daemon.process;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import io.pmfs.metadata.PathText;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** The latest warnings and errors of the log, for users without access to its file. */
public final class RecentLog extends AppenderBase<ILoggingEvent> {
  private static final int MOST = 50;
  private static final int MOST_CHARACTERS = 500;

  private final Deque<Line> lines = new ArrayDeque<>(); // GUARDED_BY(lines)

  /** A line; {@code level} is WARN or ERROR. */
  record Line(String time, String level, String message) {}

  @Override
  protected void append(ILoggingEvent event) {
    if (!event.getLevel().isGreaterOrEqual(Level.WARN)) {
      return;
    }
    String message = PathText.printable(String.valueOf(event.getFormattedMessage()));
    String time = Instant.ofEpochMilli(event.getTimeStamp()).toString();
    Line line =
        new Line(
            time,
            event.getLevel().toString(),
            message.substring(0, Math.min(MOST_CHARACTERS, message.length())));
    synchronized (lines) {
      lines.addLast(line);
      if (lines.size() > MOST) {
        lines.removeFirst();
      }
    }
  }

  /** Newest first. */
  public List<Line> lines() {
    List<Line> newestFirst = new ArrayList<>();
    synchronized (lines) {
      lines.descendingIterator().forEachRemaining(newestFirst::add);
    }
    return newestFirst;
  }
}
