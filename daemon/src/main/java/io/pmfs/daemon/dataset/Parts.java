package io.pmfs.daemon.dataset;

import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.Sessions;
import io.pmfs.settings.MountSettings;
import io.pmfs.stage.Stager;
import io.pmfs.stage.copies.Copies;
import java.util.Deque;

/**
 * The parts of a mount, assembled by {@link DatasetWiring}.
 *
 * @param bridgeReason why this bridge was chosen
 * @param isResumed whether an earlier daemon served this mount
 * @param isDirect whether the kernel reads copies in place from the beginning
 * @param opened what must be closed, in this order
 */
record Parts(
    MountSettings settings,
    SourceAndState source,
    MountTiers tiers,
    Copies copies,
    Stager stager,
    PmfsFileSystem fileSystem,
    KeptTasks tasks,
    Sessions bridge,
    RequestLog requests,
    String bridgeReason,
    boolean isResumed,
    boolean isDirect,
    Deque<AutoCloseable> opened) {}
