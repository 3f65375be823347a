/**
 * The reports of a daemon about itself and its cluster, for the control socket, metrics and {@code
 * --json}.
 *
 * <p><b>Start reading</b> at {@link StatusReport}, which has a record for each subject, and {@link
 * Figure}, which declares a figure once: its text in docs/status.md and docs/metrics.md, and its
 * metric. {@link StatusJson} flattens the subjects to one object. {@link NodesReport} sums the
 * nodes of a cluster, {@link TaskReport} is the progress of a task, {@link TaskJson} its request.
 *
 * <p><b>What must hold.</b>
 *
 * <ul>
 *   <li>Names in JSON are stable: fields are added, never changed or removed. RecordedStatusTest
 *       reads a recorded report.
 *   <li>A report may come from an older or newer daemon, or from another node: missing fields are
 *       null, unknown ones are ignored.
 *   <li>A report is a snapshot without a common lock, so its figures may be some requests apart.
 *   <li>Paths and reasons in a report are foreign text. Each display encodes them; see {@link
 *       io.pmfs.metadata.PathText}.
 * </ul>
 *
 * <p><b>Threads.</b> Callers create records. {@link RecentReads} has a thread that samples counters
 * periodically, and {@link NodesReport} a few that send requests to other nodes.
 */
@NullMarked
package io.pmfs.daemon.report;

import org.jspecify.annotations.NullMarked;
