package io.pmfs.daemon;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.Configurator;
import ch.qos.logback.core.spi.ContextAwareBase;
import org.slf4j.Logger;

/**
 * Turns logging off until {@link DaemonLog} starts: the output of commands is for people and
 * scripts. Public because Logback loads it as a service.
 */
public final class SilentLog extends ContextAwareBase implements Configurator {
  /** For the service loader. */
  public SilentLog() {}

  @Override
  public ExecutionStatus configure(LoggerContext context) {
    context.getLogger(Logger.ROOT_LOGGER_NAME).setLevel(Level.OFF);
    return ExecutionStatus.DO_NOT_INVOKE_NEXT_IF_ANY;
  }
}
