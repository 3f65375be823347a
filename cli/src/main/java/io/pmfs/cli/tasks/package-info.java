/**
 * The commands that start a task of a mount and follow it until it ends, and their displays.
 *
 * <p><b>Start reading</b> at {@link TaskCommand}, which {@link StageCommand}, {@link VerifyCommand}
 * and {@link EvictCommand} extend: it finds the mount and the paths, asks the daemon to start the
 * task, and follows it with a {@link TaskFollower}. The task belongs to the daemon; the command
 * only polls.
 *
 * <ul>
 *   <li>Progress: {@link TaskDisplay}, on a terminal {@link TaskBar} with its {@link ProgressLine},
 *       elsewhere {@link TaskLines}.
 *   <li>Problems of single paths: {@link FindingsReport}.
 *   <li>{@link DrainCommand} waits until a writable mount's changes are at the source: {@link
 *       DrainWait} polls, {@link DrainProgress} shows progress, {@link Export} copies files out of
 *       the mount.
 * </ul>
 *
 * <p><b>Threads.</b> The command polls on the main thread, after 20 ms, then at growing intervals
 * up to half a second. {@link TaskBar} has the thread of its library, which draws until the bar is
 * closed.
 *
 * <p><b>Interrupts.</b> The first SIGINT or SIGTERM cancels the task that this command started and
 * waits 30 s for its end; with {@code --wait}, and for {@code drain}, it only ends the wait. A
 * second one ends the process. While a list of paths is being sent, an interrupt ends the command,
 * and the daemon drops the incomplete list.
 *
 * <p><b>What may change meanwhile.</b> Another daemon may take over the mount: a task continues
 * under the same id, and {@link DrainWait} sends a new request to the successor. If another task
 * began before the outcome was read, the command fails.
 *
 * <p><b>What a daemon of another user is allowed to do.</b> Its text is made printable, and at most
 * a million of its findings are read.
 */
@NullMarked
package io.pmfs.cli.tasks;

import org.jspecify.annotations.NullMarked;
