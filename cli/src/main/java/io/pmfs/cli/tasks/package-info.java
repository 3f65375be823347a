/**
 * The commands that start a task of a mount and follow it to its end, and what they show meanwhile.
 *
 * <p><b>Start reading</b> at {@link TaskCommand}, which {@link StageCommand}, {@link VerifyCommand}
 * and {@link EvictCommand} extend: it finds the mount and the paths, has the daemon start the task,
 * and follows it by a {@link TaskFollower}. The task belongs to the daemon; the command only looks.
 *
 * <ul>
 *   <li>Progress: {@link TaskDisplay}, on a terminal {@link TaskBar} with its {@link ProgressLine},
 *       elsewhere {@link TaskLines}.
 *   <li>Problems of single paths: {@link FindingsReport}.
 *   <li>{@link DrainCommand} waits until a writable mount's changes are at the source: {@link
 *       DrainWait} asks, {@link DrainProgress} shows, {@link Export} copies files out of the mount.
 * </ul>
 *
 * <p><b>Threads.</b> The command asks on the main thread, after 20 ms, then less often, up to every
 * half second. {@link TaskBar} has the thread of its library, which draws until the bar is closed.
 *
 * <p><b>Interrupts.</b> The first SIGINT or SIGTERM cancels the task that this command started and
 * waits 30 s for its end; with {@code --wait} it only ends the waiting, and so it does with {@code
 * drain}. A second one ends the process. While a list of paths is being sent, an interrupt ends the
 * command, and the daemon drops the incomplete list.
 *
 * <p><b>What may change meanwhile.</b> Another daemon may serve the mount: a task goes on under the
 * same id, and {@link DrainWait} asks the successor anew. If another task began before the outcome
 * was read, the command fails and says so.
 *
 * <p><b>What a daemon of another user is allowed to do.</b> Its text is made printable, and of its
 * findings a million are taken at most.
 */
@NullMarked
package io.pmfs.cli.tasks;

import org.jspecify.annotations.NullMarked;
