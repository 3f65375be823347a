/**
 * System calls on the source, on mapped memory and between processes. Only io.pmfs.fuse and its
 * subpackages use jnr.
 *
 * <p><b>Start reading</b> at {@link LibC} and {@link FileLibC}, the plain functions, and {@link
 * Posix}, which has their numbers and layouts, turns errno into exceptions and retries interrupted
 * calls. The other classes by use:
 *
 * <ul>
 *   <li>The source: {@link DirectoryStore} reads it, {@link LinuxOutputCalls} changes it, both
 *       through {@link Beneath}; {@link ExtendedAttributes} reads attributes and access-control
 *       lists.
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
 * only {@link DescriptorSocket#connect} and sending on its sockets have a time limit.
 *
 * <p><b>Locks.</b> {@link FileUsers} and {@link GroupWriters} lock results that the C library keeps
 * for the whole process, while they query the user database. {@link DescriptorSocket} holds its own
 * lock while sending, so closing it and {@link DescriptorSocket#shutDown} wait until there is room
 * or the time limit expires. No lock is held while another is taken.
 *
 * <p><b>Invariants that cannot be seen in one method</b>
 *
 * <ul>
 *   <li>A thread acts as another user for one system call at a time ({@link FileUsers}). Classes
 *       loaded meanwhile would be opened as that user, so {@link LinuxOutputCalls} makes each call
 *       once in advance.
 *   <li>A descriptor has one owner, which closes it once: the number may be reused for another
 *       file. All are close-on-exec.
 *   <li>Unmapped memory must not be touched: the owner of a {@link PoolFile} or {@link
 *       LinuxDaxFiles} mapping closes it last. Touching a mapping of a truncated file or of
 *       defective memory kills the process, so {@link PoolFile#check} or {@link Pipe} precedes
 *       every access.
 *   <li>Numbers of system calls are those of x86-64 and AArch64; there are no others.
 * </ul>
 *
 * <p><b>Untrusted names.</b> A path may come from a source, a peer or an index, and other users may
 * change directories at any time. {@link Beneath} follows no symbolic link and never leaves its
 * directory (docs/decisions/0050); {@link LinuxOutputCalls} accepts only single names. {@link
 * StrangersDirectory} opens only regular files of its owner, by descriptor.
 */
@NullMarked
package io.pmfs.fuse.system;

import org.jspecify.annotations.NullMarked;
