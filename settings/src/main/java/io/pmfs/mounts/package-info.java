/**
 * The mounts of this machine, and for whom they are.
 *
 * <p><b>Start reading</b> at {@link Registry}: files in the runtime directory of one user, for each
 * mount point a lock that its daemon holds while it lives ({@link Registration}), a {@link
 * DaemonRecord} and a control socket. {@link KnownMounts} is what a command sees: the user's own
 * registry, and the mounts that root made for users. {@link DaemonSharing} chooses the running
 * daemon that a new mount shares. {@link MountOwner} says who mounted, {@link MountViewers} which
 * processes still have a mount in their namespace, {@link StandIn} where the source itself is
 * mounted after a crash loop.
 *
 * <p><b>What must hold.</b>
 *
 * <ul>
 *   <li>The lock, not the record, says whether a daemon lives; the mount table, not the registry,
 *       says whether something is mounted. Records of the dead stay until a command or the next
 *       daemon removes them.
 *   <li>The lock's file of a mount point is never removed: of two processes one could lock a file
 *       that the other has just removed.
 *   <li>Records of other users are foreign input. Root reads them by {@link StrangersRecords}, from
 *       descriptors of plain files with a limited size, only to find their daemons, and {@link
 *       RecordFields} says what each field may be.
 * </ul>
 *
 * <p><b>Threads.</b> Looking at a mount point or at another user's disk may hang: {@link
 * MountProbe} and {@link KnownMounts} do it on a thread that they leave behind after a limit.
 */
@NullMarked
package io.pmfs.mounts;

import org.jspecify.annotations.NullMarked;
