/**
 * Metrics of a mount in Prometheus's text format, the last hour, a web page, and the server for all
 * three. Independent of commands and of the daemon: {@code io.pmfs.daemon} passes its data as a
 * {@link io.pmfs.daemon.metrics.Snapshot}.
 *
 * <p><b>Start reading</b> at {@link Metrics}: it finds each {@link io.pmfs.daemon.report.Figure} of
 * a report that has a metric, and registers it with Micrometer; only {@link RequestDurations} goes
 * to Prometheus's registry itself. So a new metric is an annotation of a figure, and this package
 * counts nothing. {@link History} keeps the counts of an hour, {@link PageReport} is what the page
 * shows now, {@link WebPage} is the page, and {@link HttpServer} serves an {@link HttpContent} for
 * each path.
 *
 * <p><b>Threads.</b> {@link HttpServer} has {@code metrics-io}, which reads and writes, and one
 * worker {@code metrics}, so that clients take one processor at most; both end with its close.
 * {@link History#sample} is called by a thread of the daemon. {@link Metrics#text} takes one
 * snapshot with its monitor held, so that all values of an answer are of one moment; nothing of a
 * read waits for it.
 *
 * <p><b>What a client is allowed to do.</b> Whoever reaches the port may read, and nothing else:
 * GET and HEAD of known paths. Heads and times are limited; of too many connections the idle ones
 * are closed first, then those of the address that has most. On a loopback address other host names
 * are refused, because a foreign web page could point its name here. The page may run only its own
 * script.
 *
 * <p><b>What may be forgotten.</b> Everything: counts begin again with each daemon, and so does the
 * hour.
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.daemon.metrics;
