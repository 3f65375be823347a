/**
 * Metrics of a mount in Prometheus's text format, the last hour, a web page, and the server for all
 * three. Independent of commands and of the daemon: {@code io.pmfs.daemon} passes its data as a
 * {@link io.pmfs.daemon.metrics.Snapshot}.
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.daemon.metrics;
