/**
 * The life of a mount: checks before it starts, its wiring, how it serves until it is unmounted,
 * and the order in which it stops.
 *
 * <p><b>Start reading</b> at {@link Daemon#run}. Before it, {@link PreviousMount} takes the mount
 * point from what was there, {@link MountChecks} says in one line what is wrong, and {@link Wiring}
 * opens the dataset or the outputs: only it and the wirings of {@code dataset} and {@code outputs}
 * call the constructors of all parts. While it serves, {@link Presence} is where commands find it,
 * {@link Heartbeat} shows the supervisor that it works, and {@link KeptMount} keeps the session for
 * a time without a mount point. {@link Invocation} is one run of the program, which tests replace.
 *
 * <p>Two classes work without a daemon: {@link LeftOutputs} finishes what a writable mount left,
 * and {@link MountProgram} unmounts for root's scripts, or shows the source in place of a session
 * whose daemons die again and again ({@link SourceInPlace}).
 *
 * <p><b>Threads</b>
 *
 * <ul>
 *   <li>The thread that calls {@link Daemon#run} serves and stops; no other stops the daemon.
 *       Requests of the control socket and signals unmount, which wakes it.
 *   <li>{@code heartbeat}, one, with a supervisor: ends when {@link Heartbeat#close} is called. The
 *       shell that it starts requests a file through the mount.
 *   <li>{@code hand-over}, once: stops what can be stopped and ends the process.
 *   <li>{@code load}, at the start: loads native libraries ahead.
 * </ul>
 *
 * <p><b>Locks.</b> {@code Daemon.unmounting} is held while a request unmounts and asks for a purge;
 * the daemon takes it before it stops. The monitor of {@link Presence} is held while the entry is
 * published. Neither is held while the other is taken.
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>A thread of the daemon that waits for its own mount cannot be killed. Cure: another process
 *       asks for {@link Heartbeat}.
 *   <li>{@code umount --purge} unmounts, and the daemon ends before the purge was asked for. Cure:
 *       {@code Daemon.unmounting}.
 *   <li>The kernel keeps a session while files are open, and a signal must end the process. Cure:
 *       {@link Daemon#stop} unmounts lazily, waits three seconds, closes the dataset and interrupts
 *       the thread that serves.
 *   <li>A daemon keeps its mount namespace, and the namespace its mount. Cure: it ends when no
 *       other process is left in it.
 * </ol>
 *
 * <p><b>What survives.</b> With a supervisor a session outlives its daemon. From the moment that
 * readers may use it, an error does not close the dataset, which would unmount it: the process ends
 * with {@code ExitStatus.UNAVAILABLE}, and the next one continues with the settings that were kept
 * before the session file existed. Only an unmount ends the session.
 */
@NullMarked
package io.pmfs.daemon;

import org.jspecify.annotations.NullMarked;
