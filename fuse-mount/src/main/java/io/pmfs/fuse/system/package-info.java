/**
 * System calls: on the source, on mapped memory, between processes. With io.pmfs.fuse and its other
 * packages, all that knows jnr.
 *
 * <p><b>Start reading</b> at {@link LibC} and {@link FileLibC}, the functions as they are, and
 * {@link Posix}, with their numbers and layouts, where errno becomes an exception and an
 * interrupted call is made again. Each of the others is one use:
 *
 * <ul>
 *   <li>The source: {@link DirectoryStore} reads it, {@link LinuxOutputCalls} changes it, both by
 *       {@link Beneath}; {@link ExtendedAttributes} reads attributes and access-control lists.
 *   <li>Memory: {@link LinuxDaxFiles} maps copies, {@link PoolFile} a pool, {@link CacheLines}
 *       persists it, {@link NativeMemory} is a view. {@link Pipe} passes pages to the kernel.
 *   <li>Processes and users: {@link Spawn}, {@link StandardStreams}, {@link Priority}, {@link
 *       FileUsers}, {@link GroupWriters}, {@link FileUse}.
 *   <li>Passing open files: {@link DescriptorSocket}, {@link DescriptorMessage}, {@link
 *       PassedFile}.
 *   <li>{@link StrangersDirectory}: the directory of another user.
 * </ul>
 *
 * <p><b>Threads.</b> The package starts none. A call may take as long as the file system takes;
 * nothing here has a time limit but {@link DescriptorSocket#connect} and what is sent by it.
 *
 * <p><b>Locks.</b> Two protect results that the C library keeps for the whole process: those of
 * {@link FileUsers} and {@link GroupWriters}, while the user database is asked. {@link
 * DescriptorSocket} sends with its own held, so who closes it waits until there is room or the
 * limit is over; {@link DescriptorSocket#shutDown} needs the same lock. None is held while another
 * is taken.
 *
 * <p><b>Invariants that cannot be seen in one method</b>
 *
 * <ul>
 *   <li>A thread acts as another user for one system call at a time ({@link FileUsers}). Whatever
 *       it loaded meanwhile it would open as that user, so {@link LinuxOutputCalls} makes each call
 *       once in advance.
 *   <li>A descriptor has one owner, which closes it once: a number that was closed may be another
 *       file's by now. All are close-on-exec.
 *   <li>Memory that was unmapped must not be touched: {@link PoolFile} and {@link LinuxDaxFiles}
 *       have an owner who closes them last. A mapping of a file that was truncated or is defective
 *       kills the process if Java touches it, so {@link PoolFile#check} or {@link Pipe} goes first.
 *   <li>Numbers of system calls are those of x86-64 and AArch64; there are no others.
 * </ul>
 *
 * <p><b>What names from outside are allowed to do.</b> A path may come from a source, a peer or an
 * index, and other users may change directories at any time. {@link Beneath} follows no symbolic
 * link and leads out of no directory (docs/decisions/0050); {@link LinuxOutputCalls} takes single
 * names only. {@link StrangersDirectory} opens only regular files of its owner, by descriptor.
 */
@NullMarked
package io.pmfs.fuse.system;

import org.jspecify.annotations.NullMarked;
