package io.pmfs.daemon.process;

import static java.nio.charset.StandardCharsets.UTF_8;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import ch.qos.logback.core.ConsoleAppender;
import ch.qos.logback.core.OutputStreamAppender;
import ch.qos.logback.core.encoder.LayoutWrappingEncoder;
import ch.qos.logback.core.rolling.FixedWindowRollingPolicy;
import ch.qos.logback.core.rolling.RollingFileAppender;
import ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy;
import ch.qos.logback.core.util.Duration;
import ch.qos.logback.core.util.FileSize;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.mounts.Registry;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The daemon's log: a file of up to 10 MiB and five older ones. Commands use {@link SilentLog}. */
public final class DaemonLog {
  /** Control characters, and special characters in logback's patterns of file names. */
  private static final String SPECIAL = "[%\\\\(){}\\p{Cntrl}]";

  private static final Path SYSTEM_WIDE = Path.of("/var/log/pmfs");
  private static final long MAX_FILE_BYTES = 10 << 20;
  private static final int OLDER_FILES = 5;

  private DaemonLog() {}

  /** The default log file for a mount point. */
  public static Path defaultFile(
      Path mountpoint, Path runtimeDirectory, Surroundings surroundings) {
    Path name = mountpoint.getFileName();
    String readable = (name == null ? "root" : name.toString()).replaceAll(SPECIAL, "_");
    String file = readable + "-" + Registry.nameOf(mountpoint) + ".log";
    return directory(runtimeDirectory, surroundings).resolve(file);
  }

  public static Path directory(Path runtimeDirectory, Surroundings surroundings) {
    boolean systemWide = surroundings.isRoot() && surroundings.variable("PMFS_RUNTIME_DIR") == null;
    return systemWide && isOwn(SYSTEM_WIDE) ? SYSTEM_WIDE : runtimeDirectory;
  }

  /** If a group may write to /var/log, as on Ubuntu, its members could rename our directory. */
  private static boolean isOwn(Path directory) {
    try {
      OwnPath.ofProcess().existing(directory);
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  public static void start(Path file, String level, boolean alsoStandardError) throws MountFailure {
    prepare(file);
    LoggerContext context = begin(level);
    ch.qos.logback.classic.Logger root = context.getLogger(Logger.ROOT_LOGGER_NAME);
    root.addAppender(rollingFile(context, file));
    if (alsoStandardError) {
      root.addAppender(standardError(context));
    }
  }

  /** For services, whose standard error is logged. */
  public static void startOnStandardError(String level) {
    LoggerContext context = begin(level);
    context.getLogger(Logger.ROOT_LOGGER_NAME).addAppender(standardError(context));
  }

  private static LoggerContext begin(String level) {
    LoggerContext context = context();
    context.reset();
    ch.qos.logback.classic.Logger root = context.getLogger(Logger.ROOT_LOGGER_NAME);
    root.setLevel(Level.toLevel(level));
    context.getLogger("io.netty").setLevel(Level.WARN);
    // These libraries warn of each member that leaves or returns; our cluster logs that itself.
    context.getLogger("org.infinispan").setLevel(Level.ERROR);
    context.getLogger("org.jgroups").setLevel(Level.ERROR);
    // Reports "lost data" whenever a node dies, but the data are only periodic announcements.
    context.getLogger("org.infinispan.CLUSTER").setLevel(Level.OFF);
    return context;
  }

  private static ConsoleAppender<ILoggingEvent> standardError(LoggerContext context) {
    ConsoleAppender<ILoggingEvent> console = new ConsoleAppender<>();
    console.setTarget("System.err");
    start(console, context);
    return console;
  }

  /** Fails with a clear message, because logback reports errors only in its status list. */
  private static void prepare(Path file) throws MountFailure {
    if (!file.toString().replaceAll(SPECIAL, "").equals(file.toString())) {
      throw MountFailure.usage(
          file + ": log file: its path must not contain any of %\\(){}; choose another --log-file");
    }
    try {
      OwnPath.ofProcess().replaceableFile(file);
      if (!Files.exists(file)) {
        Files.createFile(file);
      }
      if (!Files.isWritable(file)) {
        throw MountFailure.usage(file + ": log file: cannot be written; choose another --log-file");
      }
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.USAGE,
          file + ": log file: " + Reason.of(e) + "; choose another with --log-file",
          e);
    }
  }

  private static RollingFileAppender<ILoggingEvent> rollingFile(LoggerContext context, Path file) {
    RollingFileAppender<ILoggingEvent> appender = new RollingFileAppender<>();
    appender.setFile(file.toString());
    FixedWindowRollingPolicy window = new FixedWindowRollingPolicy();
    window.setContext(context);
    window.setParent(appender);
    window.setFileNamePattern(file + ".%i");
    window.setMinIndex(1);
    window.setMaxIndex(OLDER_FILES);
    window.start();
    SizeBasedTriggeringPolicy<ILoggingEvent> size = new SizeBasedTriggeringPolicy<>();
    size.setContext(context);
    // The default, a check once a minute, would let a flood of lines fill the disk.
    size.setCheckIncrement(Duration.buildByMilliseconds(0));
    size.setMaxFileSize(new FileSize(MAX_FILE_BYTES));
    size.start();
    appender.setRollingPolicy(window);
    appender.setTriggeringPolicy(size);
    start(appender, context);
    return appender;
  }

  private static void start(OutputStreamAppender<ILoggingEvent> appender, LoggerContext context) {
    LogText layout = new LogText();
    layout.setContext(context);
    layout.start();
    LayoutWrappingEncoder<ILoggingEvent> encoder = new LayoutWrappingEncoder<>();
    encoder.setContext(context);
    encoder.setCharset(UTF_8);
    encoder.setLayout(layout);
    encoder.start();
    appender.setContext(context);
    appender.setEncoder(encoder);
    appender.start();
  }

  public static void add(AppenderBase<ILoggingEvent> appender) {
    LoggerContext context = context();
    appender.setContext(context);
    appender.start();
    context.getLogger(Logger.ROOT_LOGGER_NAME).addAppender(appender);
  }

  /** Flushes and closes the files. */
  public static void stop() {
    context().stop();
  }

  private static LoggerContext context() {
    return (LoggerContext) LoggerFactory.getILoggerFactory();
  }
}
