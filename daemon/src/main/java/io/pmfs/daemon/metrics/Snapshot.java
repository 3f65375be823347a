package io.pmfs.daemon.metrics;

import io.pmfs.daemon.report.Figure;
import io.pmfs.daemon.report.StatusReport;

/** The counts of a mount at one moment: its status and a few counts for metrics only. */
public record Snapshot(
    StatusReport status,
    @Figure(
            value =
                "reads answered with data just fetched from the source or a peer: from unfinished"
                    + " copies, and from copies that their first reader has not read to the end"
                    + " yet",
            metric = "pmfs_fetched_reads_total")
        long fetchedReads,
    @Figure(
            value = "reads that waited for the source or, in a cluster, for a peer",
            metric = "pmfs_misses_total")
        long misses,
    @Figure(
            value = "requests to the source that failed, except those for files that do not exist",
            metric = "pmfs_source_errors_total")
        long sourceErrors) {}
