/**
 * The tasks of a mount, which survive its daemons and are shared by the nodes of a cluster.
 *
 * <p><b>Start reading</b> at {@link KeptTasks}: it starts the tasks of {@code io.pmfs.tasks},
 * assigns ids, and records the running one in a {@link TaskFile} for the next daemon. {@link
 * TaskLists} are the lists of paths beside it. In a cluster a task is a {@link SharedTask}: this
 * node's own task and a {@link PeerPart} for each other node, with requests by {@link PeerTasks}.
 * {@link Drains} are waits for the source of a writable mount, which has {@link NoTasks}.
 *
 * <p><b>Threads.</b> {@code task-end} follows the running task and records its position each
 * second; {@code part-NODE} follows one node's part; {@code drain-N}, up to 16, waits for the
 * source. Each ends when what it follows ends; {@link KeptTasks#close} cancels and waits, {@link
 * Drains#close} interrupts. If no thread can be started, a part counts as not done, and a task runs
 * without being followed.
 *
 * <p><b>Lock order</b>: {@link KeptTasks} before a task's own. Its monitor is held while a task
 * starts and while the file is written, not while a task ends or a peer is asked.
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>Two nodes that follow each other's tasks count in circles, or wait for each other. Cure:
 *       requests of other nodes concern this node's own part only.
 *   <li>{@link KeptTasks#close} waits for a task whose thread needs the monitor. Cure: it waits
 *       without holding it.
 * </ol>
 *
 * <p><b>What survives</b>
 *
 * <ul>
 *   <li>The request of the running task, its list and a prefetch's position, but not its counts and
 *       findings. A daemon that takes over continues it, at most three times unless it ran for ten
 *       minutes, because it may be what crashes the daemons. Another session discards it.
 *   <li>After a hand-over this daemon reports the task as running and keeps file and list.
 *   <li>If the disk of the state refuses a list, it is kept in a file without a name, and the next
 *       daemon cannot continue the task.
 *   <li>An unreachable node is polled for half a minute; then its part is a finding.
 * </ul>
 *
 * <p><b>What other nodes are allowed to do.</b> Start only tasks that all nodes take part in, and
 * cancel only what another node started here. Their reports are untrusted text.
 */
@NullMarked
package io.pmfs.daemon.tasks;

import org.jspecify.annotations.NullMarked;
