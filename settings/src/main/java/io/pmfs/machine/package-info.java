/**
 * What all commands share: exit statuses, errors in one line, the machine's table of mounts, and
 * sizes and times as text. Nothing here knows an option or a dataset.
 *
 * <p><b>Start reading</b> at {@link MountFailure} and {@link ExitStatus}: how a command ends if it
 * fails, in one line and a status on which job scripts rely. {@link Reason} words the errors of the
 * operating system. {@link MountTable} is a snapshot of /proc/self/mountinfo. {@link ByteSize},
 * {@link TimeSpan} and {@link ValueParser} read and write values; their IllegalArgumentException
 * has a message for the user. {@link NativeText} passes text to and from the operating system as
 * UTF-8, although the daemon's default charset is ISO-8859-1. {@link UserNamespace} says as whom
 * root shows.
 *
 * <p><b>Threads.</b> {@link Limited} starts one for each call that may hang in the kernel, such as
 * a look at a mount whose daemon is gone. It is interrupted when the time is over, and left behind
 * if the kernel holds it: it does not keep the process alive. Everything else runs on the caller's
 * thread, without locks.
 *
 * <p><b>What is true only for a moment.</b> A {@link MountTable} is what was there when it was
 * read. A device number identifies a session only as long as that has not ended, because the kernel
 * gives the number away again: {@link MountTable#placesOf(MountTable.Mount)} compares the source as
 * well.
 */
@NullMarked
package io.pmfs.machine;

import org.jspecify.annotations.NullMarked;
