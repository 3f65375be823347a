/**
 * Single requests of the kernel: the access log, the log of slow requests, and profiles of their
 * lines. Independent of commands and of the daemon: {@code io.pmfs.daemon} passes the data.
 *
 * <p><b>Start reading</b> at {@link RequestLog}: workers put answered requests into its queue, and
 * one thread makes a {@link LogLine} of each, with paths by {@link RequestPaths}. Lines go to the
 * {@link AccessLogFile} and to each {@link LineReader}; {@link SlowRequests} and {@link
 * FailedRequests} get theirs. A {@link Profile} sums lines by a {@link ProfileKey}, {@link
 * ProfileTable} shows it, {@link LineSplitter} reads lines from a file or a connection.
 *
 * <p><b>Threads.</b> {@code requests}, one: it takes from the queue, and each second looks for
 * requests that have no answer yet. {@link RequestLog#close} gives it two seconds for the last
 * lines; if it hangs in a disk, it is left behind and its file stays open.
 *
 * <p><b>A worker never waits here</b> (docs/decisions/0031). The queue has a limit; what does not
 * fit is counted, and a line says how many requests are missing. Without an access log and readers
 * only slow and failed requests enter it. Readers and {@link SlowRequests} must not wait either,
 * because all share the thread. All locks are monitors of single objects and innermost.
 *
 * <p><b>What may be forgotten.</b> Lines that the disk refuses are counted, and the file says how
 * many once it can be written. Paths are a cache: a line has the inode's number if its path is not
 * known. A profile keeps the keys with the most time; the rest is one sum.
 *
 * <p><b>What a name is allowed to do.</b> A line is one line whatever bytes a name has, and the
 * name is the same when the line is parsed. A line that is no line is counted. The file belongs to
 * its owner alone; each time it is opened, a caller's check of the place comes first ({@link
 * AccessLogFile.Place}).
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.daemon.requests;
