package io.pmfs.daemon.process;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.Configurator;
import ch.qos.logback.classic.util.LogbackMDCAdapter;
import ch.qos.logback.core.spi.ContextAwareBase;
import org.slf4j.ILoggerFactory;
import org.slf4j.IMarkerFactory;
import org.slf4j.Logger;
import org.slf4j.helpers.BasicMarkerFactory;
import org.slf4j.spi.MDCAdapter;
import org.slf4j.spi.SLF4JServiceProvider;

/**
 * Turns logging off until {@link DaemonLog} starts: the output of commands is for people and
 * scripts. Public because it is loaded by name: by SLF4J, as scripts/pmfs sets {@code
 * slf4j.provider}, or without that script by Logback as a service. The property saves a tenth of a
 * second, because a search for services opens every library on the class path.
 */
public final class SilentLog extends ContextAwareBase
    implements Configurator, SLF4JServiceProvider {
  private final LoggerContext loggers = new LoggerContext();
  private final IMarkerFactory markers = new BasicMarkerFactory();
  private final LogbackMDCAdapter diagnostics = new LogbackMDCAdapter();

  /** For SLF4J and Logback. */
  public SilentLog() {}

  @Override
  public ExecutionStatus configure(LoggerContext context) {
    context.getLogger(Logger.ROOT_LOGGER_NAME).setLevel(Level.OFF);
    return ExecutionStatus.DO_NOT_INVOKE_NEXT_IF_ANY;
  }

  @Override
  public void initialize() {
    configure(loggers);
    loggers.setMDCAdapter(diagnostics);
    loggers.start();
  }

  @Override
  public ILoggerFactory getLoggerFactory() {
    return loggers;
  }

  @Override
  public IMarkerFactory getMarkerFactory() {
    return markers;
  }

  @Override
  public MDCAdapter getMDCAdapter() {
    return diagnostics;
  }

  @Override
  public String getRequestedApiVersion() {
    return "2.0.99";
  }
}
