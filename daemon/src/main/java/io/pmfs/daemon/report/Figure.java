package io.pmfs.daemon.report;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Declares a figure of a report: on a record component, which defines name, type and place in JSON,
 * or on another method, for a value that is only a metric. The rows of docs/status.md and
 * docs/metrics.md and the metric itself are derived from it.
 */
@Documented
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
public @interface Figure {
  /** The meaning in Markdown, without a full stop. */
  String value();

  /**
   * The name in Prometheus, with its unit. A counter ends in {@code _total}, all others are gauges.
   * True is 1. Empty if the figure is not a metric.
   */
  String metric() default "";

  /** The name and value of a label that distinguishes figures of the same metric. */
  String[] label() default {};
}
