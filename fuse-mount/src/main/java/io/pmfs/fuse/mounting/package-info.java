/**
 * Mounting and unmounting: as root, for a supervisor, by fusermount.
 *
 * <p><b>Start reading</b> at {@link Mounting}, which chooses one of four ways for a {@link
 * MountSpec}:
 *
 * <ul>
 *   <li>{@link MountingByRoot}, by mount(2) at a {@link MountPoint}.
 *   <li>{@link MountingBySupervisor}: the daemon of {@code --user} asks root over two pipes ({@link
 *       Mounter}).
 *   <li>{@link MountedByAnother}: the mount point is an open /dev/fuse that another program
 *       mounted.
 *   <li>{@link MountingByUser}: {@link Fusermount} mounts, and a {@link StaleMountGuard} unmounts
 *       if the daemon dies.
 * </ul>
 *
 * <p>{@link SharedSession} is a session that outlives this process, {@link SessionMount} identifies
 * its mount, {@link Unmount} unmounts for commands too, and {@link ReadAhead} sets the kernel's
 * read-ahead. The message of a {@link MountException} is one line for the user.
 *
 * <p><b>Threads and processes.</b> {@code fusermount} waits for that program; after a timeout the
 * program is killed, and the thread ends with it. {@link StaleMountGuard} is a shell in a session
 * of its own that survives the daemon: it waits for the end of a pipe, then asks the kernel whether
 * the mount has a daemon. {@link StaleMountGuard#close} ends it.
 *
 * <p><b>Locks.</b> {@link Mounter} holds its monitor during each request, for as long as the
 * supervisor takes.
 *
 * <p><b>Known deadlock.</b> A request to a mount whose daemon hangs never returns. Cure: {@link
 * MountPoint} opens mounts only with O_PATH and reads everything from /proc; {@link
 * StaleMountGuard} sends a request only after its daemon is gone.
 *
 * <p><b>Identity.</b> A path does not identify a mount, because another mount may have replaced it.
 * The device number does: it identifies the kernel's connection (docs/decisions/0033). The table of
 * mounts may change while it is read, so an absence is checked twice.
 *
 * <ul>
 *   <li>As root, {@link MountPoint} opens the parent directory by descriptors, without following
 *       symbolic links, and checks the device number of an open mount before it unmounts or binds
 *       it (docs/decisions/0052). Unmounting without {@code --lazy} has to use the name in the open
 *       directory, because a descriptor of the mount would keep it busy.
 *   <li>A user's daemon passes root an open file and no path ({@link Mounter#join}).
 *   <li>{@link Unmount} does nothing if a session is no longer at its mount point; for users,
 *       fusermount checks that the mount is theirs.
 * </ul>
 */
@NullMarked
package io.pmfs.fuse.mounting;

import org.jspecify.annotations.NullMarked;
