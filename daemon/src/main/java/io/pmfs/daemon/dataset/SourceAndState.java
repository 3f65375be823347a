package io.pmfs.daemon.dataset;

import io.pmfs.cluster.Cluster;
import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.RocksNamespace;
import io.pmfs.source.CountedBackingStore;
import io.pmfs.stage.Lenders;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * An open source, and the state that pmfs keeps of it.
 *
 * @param dataset the name of the source's directory in each place
 * @param origin the source itself
 * @param store the source, read through peers if there are any
 * @param cluster the nodes that share the source; null if there are none
 * @param state the directory of the namespace, which belongs to this dataset alone
 * @param lenders other mounts on this machine whose copies this one uses
 * @param transientCopies whether this mount wants its copies to be dropped
 * @param memory the direct memory that all parts of the mount share
 */
record SourceAndState(
    String dataset,
    DatasetSource origin,
    CountedBackingStore store,
    @Nullable Cluster cluster,
    Path state,
    RocksNamespace namespace,
    Lenders lenders,
    TransientCopies transientCopies,
    DirectMemory memory) {}
