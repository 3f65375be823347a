/**
 * The mounts of this machine: {@link io.pmfs.mounts.Registry} has the daemons of one user, each
 * with a {@link io.pmfs.mounts.DaemonRecord}; {@link io.pmfs.mounts.KnownMounts} has all that a
 * command sees. A daemon holds a {@link io.pmfs.mounts.Registration} as long as it serves; a {@link
 * io.pmfs.mounts.MountOwner} says for whom. {@link io.pmfs.mounts.DaemonSharing} chooses the daemon
 * that a new mount shares.
 */
@NullMarked
package io.pmfs.mounts;

import org.jspecify.annotations.NullMarked;
