package io.pmfs.daemon;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.Configurator;
import ch.qos.logback.core.spi.ContextAwareBase;
import org.slf4j.Logger;

/**
 * How logging is until {@link DaemonLog} starts: off, because what commands print is for people and
 * scripts. Logback finds it as a service and makes it, hence public.
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
