/**
 * The mounts of this machine and their users.
 *
 * <p><b>Start reading</b> at {@link Registry}: files in the runtime directory of one user, for each
 * mount point a lock that its daemon holds while it lives ({@link Registration}), a {@link
 * DaemonRecord} and a control socket. {@link KnownMounts} is what a command sees: the user's own
 * registry, and the mounts that root made for users. {@link DaemonSharing} chooses the running
 * daemon that a new mount shares. {@link MountOwner} records who mounted, {@link MountViewers}
 * finds processes that still have a mount in their namespace, {@link StandIn} is a mount of the
 * source itself after a crash loop.
 *
 * <p><b>What must hold.</b>
 *
 * <ul>
 *   <li>The lock, not the record, determines whether a daemon lives; the mount table, not the
 *       registry, determines what is mounted. Records of dead daemons stay until a command or the
 *       next daemon removes them.
 *   <li>The lock file of a mount point is never removed: otherwise a process could lock a file that
 *       another one has just removed.
 *   <li>Records of other users are foreign input. Root reads them through {@link StrangersRecords},
 *       from descriptors of plain files with a limited size, only to find their daemons, and {@link
 *       RecordFields} validates each field.
 * </ul>
 *
 * <p><b>Threads.</b> Access to a mount point or another user's disk may hang: {@link MountProbe}
 * and {@link KnownMounts} use a thread that they abandon after a time limit.
 */
@NullMarked
package io.pmfs.mounts;

import org.jspecify.annotations.NullMarked;
