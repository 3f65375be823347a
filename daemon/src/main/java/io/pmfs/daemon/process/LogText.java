package io.pmfs.daemon.process;

import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.IThrowableProxy;
import ch.qos.logback.classic.spi.StackTraceElementProxy;
import ch.qos.logback.classic.spi.ThrowableProxyUtil;
import ch.qos.logback.core.LayoutBase;
import io.pmfs.metadata.PathText;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * The layout of log lines: time, level, thread, message. Encodes control characters in messages,
 * including those of exceptions, so that no name in a dataset and no answer of another node can
 * forge a line or control a terminal.
 */
final class LogText extends LayoutBase<ILoggingEvent> {
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", Locale.ROOT);

  private final ZoneId zone = ZoneId.systemDefault();

  @Override
  public String doLayout(ILoggingEvent event) {
    StringBuilder text = new StringBuilder(160);
    TIME.formatTo(Instant.ofEpochMilli(event.getTimeStamp()).atZone(zone), text);
    text.append(' ').append(String.format(Locale.ROOT, "%-5s", event.getLevel()));
    text.append(" [")
        .append(PathText.printable(String.valueOf(event.getThreadName())))
        .append("] ");
    text.append(PathText.printable(String.valueOf(event.getFormattedMessage()))).append('\n');
    IThrowableProxy thrown = event.getThrowableProxy();
    if (thrown != null) {
      text.append(ThrowableProxyUtil.asString(new Printable(thrown)));
    }
    return text.toString();
  }

  /** A throwable whose messages, and those of its causes, are printable. */
  private record Printable(IThrowableProxy thrown) implements IThrowableProxy {
    private static @Nullable Printable of(@Nullable IThrowableProxy thrown) {
      return thrown == null ? null : new Printable(thrown);
    }

    @Override
    public @Nullable String getMessage() {
      String message = thrown.getMessage();
      return message == null ? null : PathText.printable(message);
    }

    @Override
    public String getClassName() {
      return thrown.getClassName();
    }

    @Override
    public StackTraceElementProxy[] getStackTraceElementProxyArray() {
      return thrown.getStackTraceElementProxyArray();
    }

    @Override
    public int getCommonFrames() {
      return thrown.getCommonFrames();
    }

    @Override
    public @Nullable IThrowableProxy getCause() {
      return of(thrown.getCause());
    }

    @Override
    public IThrowableProxy[] getSuppressed() {
      IThrowableProxy[] suppressed = thrown.getSuppressed();
      IThrowableProxy[] printable = new IThrowableProxy[suppressed == null ? 0 : suppressed.length];
      for (int i = 0; i < printable.length; i++) {
        printable[i] = new Printable(suppressed[i]);
      }
      return printable;
    }

    @Override
    public boolean isCyclic() {
      return thrown.isCyclic();
    }
  }
}
