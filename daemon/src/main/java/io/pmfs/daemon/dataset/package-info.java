/**
 * Mounts as the daemon sees them, and the read-only mount of a dataset.
 *
 * <p>{@link io.pmfs.daemon.dataset.MountLife} is the life of a mount: mounted, watched, handed over
 * or unmounted, closed. {@link io.pmfs.daemon.dataset.MountedDataset} adds what commands, metrics
 * and the next daemon see, {@link io.pmfs.daemon.dataset.MountedOutputs} what only a writable mount
 * offers. {@link io.pmfs.daemon.dataset.ServedMount} implements the life over a {@link
 * io.pmfs.daemon.dataset.KernelSession}; its two subclasses serve and close their parts.
 *
 * <p>{@link io.pmfs.daemon.dataset.DatasetWiring} opens the parts of a dataset in this order:
 *
 * <ol>
 *   <li>{@link io.pmfs.daemon.dataset.SourceAndState}: the source, the namespace that records it,
 *       and the cluster that shares it
 *   <li>{@link io.pmfs.daemon.dataset.MountTiers}: the tiers at their places, and the copies in
 *       them
 *   <li>the stager, the file system, the kernel's session and the log of its requests
 *   <li>{@link io.pmfs.daemon.dataset.ServedDataset}, which mounts it
 * </ol>
 *
 * <p>{@link io.pmfs.daemon.dataset.Opened} owns the parts and closes them in reverse order: at once
 * if one of them cannot be opened, else when the mount ends. ServedDataset first leaves the
 * cluster, then stops making copies, so that the recorded usage of the tiers is final.
 */
@NullMarked
package io.pmfs.daemon.dataset;

import org.jspecify.annotations.NullMarked;
