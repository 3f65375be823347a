package io.pmfs.daemon.report;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * One figure of a report, declared once: on a component of a record, whose name, type and place are
 * those in JSON, or on a method that is no component, for a value that only metrics have. From it
 * come the rows of docs/status.md and docs/metrics.md and the metric itself.
 */
@Documented
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
public @interface Figure {
  /** What it says, without a full stop; Markdown. */
  String value();

  /**
   * Its name for Prometheus, with its unit; a counter ends in {@code _total}, all others are
   * gauges. Truth counts as 1. Empty if it is no metric.
   */
  String metric() default "";

  /** Name and value of a label, which tells it from other figures of the same metric. */
  String[] label() default {};
}
