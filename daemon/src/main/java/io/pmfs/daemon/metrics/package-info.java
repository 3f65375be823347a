/**
 * Metrics of a mount in Prometheus's text format, the last hour, a web page, and the server for all
 * three. Independent of commands and of the daemon: {@code io.pmfs.daemon} passes its data as a
 * {@link io.pmfs.daemon.metrics.Snapshot}.
 *
 * <p><b>Start reading</b> at {@link Metrics}: it finds each {@link io.pmfs.daemon.report.Figure} of
 * a report that has a metric, and registers it with Micrometer; only {@link RequestDurations} goes
 * to Prometheus's registry itself. So a new metric is only an annotation of a figure. {@link
 * History} keeps the counts of an hour, {@link PageReport} has the page's present values, {@link
 * WebPage} is the page, and {@link HttpServer} serves an {@link HttpContent} for each path.
 *
 * <p><b>Threads.</b> {@link HttpServer} has {@code metrics-io}, which reads and writes, and one
 * worker {@code metrics}, so that clients use at most one processor; both end when it is closed.
 * {@link History#sample} is called by a thread of the daemon. {@link Metrics#text} takes one
 * snapshot with its monitor held, so that all values of an answer are of one moment; readers never
 * need that monitor.
 *
 * <p><b>What a client is allowed to do.</b> Only GET and HEAD of known paths. The size of a head
 * and the duration of a connection are limited; excess connections are closed, idle ones first,
 * then those of the address with the most. On a loopback address other host names are refused,
 * because a foreign web page could point its name here.
 *
 * <p><b>What may be forgotten.</b> Everything: each daemon counts from zero.
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.daemon.metrics;
