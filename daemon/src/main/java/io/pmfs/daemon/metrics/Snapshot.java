package io.pmfs.daemon.metrics;

import io.pmfs.daemon.report.Figure;
import io.pmfs.daemon.report.StatusReport;

/** What a mount counts, at one moment: its status, and a few counts that are metrics only. */
public record Snapshot(
    StatusReport status,
    @Figure(
            value =
                "reads answered by what was read from the source, or a peer, a moment before:"
                    + " copies in the making, and copies that a first reader has not read to the"
                    + " end yet",
            metric = "pmfs_fetched_reads_total")
        long fetchedReads,
    @Figure(
            value = "reads that waited for the source or, in a cluster, for a peer",
            metric = "pmfs_misses_total")
        long misses,
    @Figure(
            value = "requests to the source that failed; that a file does not exist is not counted",
            metric = "pmfs_source_errors_total")
        long sourceErrors) {}
