/**
 * The reports of a daemon about itself and its cluster, for the control socket, metrics and {@code
 * --json}.
 *
 * <p><b>Start reading</b> at {@link StatusReport}, which has a record for each subject, and {@link
 * Figure}, which declares a figure once: its words for docs/status.md and docs/metrics.md, and the
 * metric. {@link StatusJson} flattens the subjects to one object. {@link NodesReport} adds up the
 * nodes of a cluster, {@link TaskReport} is the progress of a task, {@link TaskJson} its request.
 *
 * <p><b>What must hold.</b>
 *
 * <ul>
 *   <li>Names in JSON are stable: fields are added, never changed or removed. RecordedStatusTest
 *       reads a recorded report.
 *   <li>A report may come from an older or newer daemon, or from another node: a field that it does
 *       not have is null, and unknown ones are ignored.
 *   <li>A report is a snapshot without a lock over all parts, so its figures may be some requests
 *       apart.
 *   <li>Paths and reasons in a report are foreign text. Each display encodes them; see {@link
 *       io.pmfs.metadata.PathText}.
 * </ul>
 *
 * <p><b>Threads.</b> Records are made by whoever asks. {@link RecentReads} has a thread that notes
 * the counters at intervals, and {@link NodesReport} asks the other nodes on a few threads.
 */
@NullMarked
package io.pmfs.daemon.report;

import org.jspecify.annotations.NullMarked;
