/**
 * Mounting and unmounting: as root, for a supervisor, by fusermount.
 *
 * <p><b>Start reading</b> at {@link Mounting}, which chooses one of three ways for a {@link
 * MountSpec}:
 *
 * <ul>
 *   <li>{@link MountingByRoot}, by mount(2) at a {@link MountPoint}.
 *   <li>{@link MountingBySupervisor}: the daemon of {@code --user} asks root over two pipes ({@link
 *       Mounter}).
 *   <li>{@link MountingByUser}: {@link Fusermount} mounts, and a {@link StaleMountGuard} unmounts
 *       if the daemon dies.
 * </ul>
 *
 * <p>{@link SharedSession} is a session that outlives this process, {@link SessionMount} says which
 * mount is its own, {@link Unmount} unmounts for commands too, and {@link ReadAhead} sets what the
 * kernel reads ahead. {@link MountException} has one line for the user.
 *
 * <p><b>Threads and processes.</b> {@code fusermount} waits for that program's answer; if it takes
 * too long the program is killed, and the thread ends with it. {@link StaleMountGuard} is a shell
 * in a session of its own that survives the daemon: it waits for the end of a pipe, then asks the
 * kernel whether the mount has a daemon. {@link StaleMountGuard#close} ends it.
 *
 * <p><b>Locks.</b> {@link Mounter} asks with its monitor held, one question at a time, for as long
 * as the supervisor takes.
 *
 * <p><b>Known deadlock.</b> Whoever asks a mount whose daemon hangs waits with it. Cure: {@link
 * MountPoint} opens it only as a place (O_PATH) and learns everything from /proc; {@link
 * StaleMountGuard} asks only after its daemon is gone.
 *
 * <p><b>What a path is allowed to do.</b> A path does not identify a mount: another may lie there
 * by now. The device number does, which is the kernel's connection (docs/decisions/0033). The table
 * of mounts may change while it is read, so an absence is looked for twice.
 *
 * <ul>
 *   <li>As root, {@link MountPoint} reaches the directory above by descriptors and through no
 *       symbolic link, and compares the device number of what it has open before it unmounts or
 *       binds that (docs/decisions/0052). Unmounting without {@code --lazy} must use a name in the
 *       open directory: a descriptor of the mount would keep it busy.
 *   <li>A user's daemon passes root an open file and no path ({@link Mounter#join}).
 *   <li>{@link Unmount} leaves a session alone that is not at its mount point any more, and
 *       fusermount decides for users what is theirs.
 * </ul>
 */
@NullMarked
package io.pmfs.fuse.mounting;

import org.jspecify.annotations.NullMarked;
