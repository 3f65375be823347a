/**
 * The life of a mount: checks before it starts, its wiring, how it serves until it is unmounted,
 * and the order in which it stops.
 *
 * <p><b>Start reading</b> at {@link Daemon#run}. Before it, {@link PreviousMount} takes over the
 * mount point, {@link MountChecks} reports obstacles, each in one line, and {@link Wiring} opens
 * the dataset or the outputs: only it and the wirings of {@code dataset} and {@code outputs} call
 * the constructors of all parts. While the daemon serves, commands find it by its {@link Presence},
 * {@link Heartbeat} shows the supervisor that it works, and {@link KeptMount} keeps the session for
 * a time without a mount point. {@link Invocation} is one run of the program, which tests replace.
 *
 * <p>Two classes work without a daemon: {@link LeftOutputs} copies to the source what an ended
 * writable mount left, and {@link MountProgram} unmounts for root's scripts, or mounts the source
 * in place of a session whose daemons keep dying ({@link SourceInPlace}).
 *
 * <p><b>Threads</b>
 *
 * <ul>
 *   <li>The thread that calls {@link Daemon#run} serves and stops; no other stops the daemon.
 *       Requests of the control socket and signals unmount, which wakes it.
 *   <li>{@code heartbeat}, one, with a supervisor: ends when {@link Heartbeat#close} is called. The
 *       shell that it starts requests a file through the mount.
 *   <li>{@code hand-over}, once: stops what can be stopped and ends the process.
 *   <li>{@code load}, at the start: loads native libraries.
 * </ul>
 *
 * <p><b>Locks.</b> {@code Daemon.unmounting} is held while a request unmounts and requests a purge;
 * the daemon acquires it before it stops. The monitor of {@link Presence} is held while the entry
 * is published. No thread holds both.
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>A thread of the daemon that waits for its own mount cannot be killed. Cure: {@link
 *       Heartbeat} sends its requests from another process.
 *   <li>{@code umount --purge} unmounts, and the daemon ends before the purge is requested. Cure:
 *       {@code Daemon.unmounting}.
 *   <li>The kernel keeps a session while files are open, and a signal must end the process. Cure:
 *       {@link Daemon#stop} unmounts lazily, waits three seconds, closes the dataset and interrupts
 *       the thread that serves.
 *   <li>A daemon keeps its mount namespace alive, and the namespace its mount. Cure: the daemon
 *       ends when no other process is left in the namespace.
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
