/**
 * What all commands share: exit statuses, errors in one line, the machine's table of mounts, and
 * sizes and times as text. Independent of options and datasets.
 *
 * <p><b>Start reading</b> at {@link MountFailure} and {@link ExitStatus}: how a command ends if it
 * fails, in one line and a status on which job scripts rely. {@link Reason} words the errors of the
 * operating system. {@link MountTable} is a snapshot of /proc/self/mountinfo. {@link ByteSize},
 * {@link TimeSpan} and {@link ValueParser} read and write values; their IllegalArgumentException
 * has a message for the user. {@link NativeText} passes text to and from the operating system as
 * UTF-8, although the daemon's default charset is ISO-8859-1. {@link UserNamespace} is the id as
 * which root appears.
 *
 * <p><b>Threads.</b> {@link Limited} starts one for each call that may hang in the kernel, such as
 * access to a mount whose daemon is gone. On timeout it is interrupted, and abandoned if the kernel
 * blocks it: it is a daemon thread. Everything else runs on the caller's thread, without locks.
 *
 * <p><b>Snapshots.</b> A {@link MountTable} may be outdated as soon as it is read. A device number
 * identifies a session only until the session ends, because the kernel reuses it: {@link
 * MountTable#placesOf(MountTable.Mount)} compares the source too.
 */
@NullMarked
package io.pmfs.machine;

import org.jspecify.annotations.NullMarked;
