/**
 * POSIX and threads: errors, limits, the file systems of this machine. Makes no native calls and
 * knows nothing of pmfs.
 *
 * <p><b>Start reading</b> at {@link FsException} and {@link Errno}: the error of a file system
 * call, passed unchanged to the kernel. {@link DaemonThread} and {@link DaemonPool} create all
 * threads of the daemon. The rest stands alone: {@link OpenFileLimit} (how many files to keep
 * open), {@link AvailableMemory} and {@link MemoryGroup} (memory for the pages that a process
 * reads), {@link MountedFileSystem} and {@link BlockDevice} (the device of a directory), {@link
 * RemainingFiles} (a walk through a tree that others change).
 *
 * <p><b>Threads.</b> All are daemon threads: none keeps the process alive. Exceptions and {@link
 * Error}s are logged.
 *
 * <ul>
 *   <li>{@link DaemonThread#start} runs work once. It throws {@link OutOfMemoryError} if no thread
 *       can be started: the caller does the work itself, or releases what it had acquired for it.
 *   <li>{@link DaemonThread#lasting} is for a thread that must live as long as the mount: work that
 *       throws is restarted after 100 ms to 10 s. {@link Troubles} reports it for half a minute, in
 *       {@code pmfs status}.
 *   <li>{@link DaemonPool} starts its first thread at once. If no more can be started, that one
 *       runs all tasks in order. Its queue is unbounded: callers limit their tasks.
 * </ul>
 *
 * <p>A thread ends when its work returns; its owner interrupts it or shuts down the pool.
 */
@NullMarked
package io.pmfs.posix;

import org.jspecify.annotations.NullMarked;
