/**
 * Single requests of the kernel: the access log, the log of slow requests, and profiles of their
 * lines. Independent of commands and of the daemon: {@code io.pmfs.daemon} passes the data.
 *
 * <p><b>Start reading</b> at {@link RequestLog}: workers put answered requests into its queue, and
 * one thread formats each as a {@link LogLine}, with the path from {@link RequestPaths}, for the
 * {@link AccessLogFile} and each {@link LineReader}. {@link SlowRequests} and {@link
 * FailedRequests} receive their requests. A {@link Profile} sums lines by a {@link ProfileKey},
 * {@link ProfileTable} shows it, {@link LineSplitter} reads lines from a file or a connection.
 *
 * <p><b>Threads.</b> {@code requests}, one, drains the queue and each second looks for unanswered
 * requests. {@link RequestLog#close} waits two seconds for the last lines; a thread that hangs in a
 * disk is abandoned, and its file stays open.
 *
 * <p><b>A worker never waits here</b> (docs/decisions/0031). The queue is bounded; requests that do
 * not fit are counted, and a line states how many are missing. Without an access log and readers
 * only slow and failed requests enter it. Readers and {@link SlowRequests} must not block either,
 * because all share the thread. All locks are monitors of single objects and innermost.
 *
 * <p><b>What may be forgotten.</b> Lines that the disk refuses are counted, and a later line in the
 * file states how many. Paths are a cache: a line has the inode number if the path is unknown. A
 * profile keeps the keys with the most time and sums the rest.
 *
 * <p><b>What a name is allowed to do.</b> Names are encoded so that any bytes fit in one line and
 * are parsed back unchanged. Malformed lines are counted. The file belongs to its owner alone; each
 * time it is opened, a caller's check of the place comes first ({@link AccessLogFile.Place}).
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.daemon.requests;
