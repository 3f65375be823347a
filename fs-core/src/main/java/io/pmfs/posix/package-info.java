/**
 * What the program knows of POSIX and of its own threads: errors, limits, the file systems of this
 * machine. It makes no system calls of its own and knows nothing of pmfs.
 *
 * <p><b>Start reading</b> at {@link FsException} and {@link Errno}: the error of a file system
 * call, passed on unchanged to where the kernel is answered. {@link DaemonThread} and {@link
 * DaemonPool} are the only ways to make threads in the daemon. The rest stands alone: {@link
 * OpenFileLimit} (how many files may be kept open), {@link MountedFileSystem} and {@link
 * BlockDevice} (what a directory lies on), {@link RemainingFiles} (a walk through a tree that
 * others change).
 *
 * <p><b>Threads.</b> All are daemon threads: none keeps the process alive. Whatever is thrown in
 * one, also an {@link Error}, is logged and goes no further.
 *
 * <ul>
 *   <li>{@link DaemonThread#start} runs work once. It throws {@link OutOfMemoryError} if there can
 *       be no thread now: the caller does the work itself, or gives back what was taken for it.
 *   <li>{@link DaemonThread#lasting} is for a thread that has to live as long as the mount: if its
 *       work throws, it begins again, after a pause of 100 ms to 10 s. {@link Troubles} knows for
 *       half a minute which did, for {@code pmfs status}.
 *   <li>{@link DaemonPool} starts its first thread at once. If there can be no more, that one does
 *       everything, in order. Its queue has no limit: who gives it work limits that.
 * </ul>
 *
 * <p>A thread of these ends when its work returns; the owner of the work interrupts it or shuts the
 * pool down.
 */
@NullMarked
package io.pmfs.posix;

import org.jspecify.annotations.NullMarked;
