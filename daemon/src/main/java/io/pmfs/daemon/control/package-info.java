/**
 * The control socket: HTTP with JSON for the commands of this machine, and the requests of other
 * nodes to this one. Its other end is io.pmfs.cli.control.
 *
 * <p><b>Start reading</b> at {@link ControlServer}, which dispatches by path, and {@link
 * ControlRequests}, which the daemon implements. {@link TaskResource} is {@code /tasks}, {@link
 * ListReceiver} takes a task with a list of paths of any length, {@link RequestFeed} sends lines of
 * requests, and {@link ControlAnswer} is any other answer. {@link NodeResource} answers other
 * nodes.
 *
 * <p><b>Threads.</b> {@code control-io}, one, reads and writes; two workers {@code control} compute
 * answers; {@code control-list}, one, writes lists to files, because that disk may hang. {@link
 * ControlServer#close} stops listening, gives requests in progress two seconds, and ends them. The
 * thread that formats log lines passes them to {@link RequestFeed} and never waits: a slow client
 * loses lines, and a later line counts the lost ones.
 *
 * <p><b>Locks.</b> The monitor of a {@link RequestFeed} is held while it is added to the log of
 * requests, and so before that of the log; nothing else is held across a call.
 *
 * <p><b>Known deadlock.</b> A long request occupies one of the two workers; up to 32 others queue
 * behind it, and further ones are refused. Cure: tasks and drains, which may take any time, have
 * threads elsewhere, and clients poll them.
 *
 * <p><b>Who is allowed to do what.</b>
 *
 * <ul>
 *   <li>The socket has mode 0600 in a directory of mode 0700: only the daemon's user and root can
 *       connect, and may do whatever that user's processes may.
 *   <li>Other nodes may read this node's status, and start, follow and cancel its own part of a
 *       task of all nodes ({@link NodeResource}); they have proved that they know the secret.
 *   <li>Bodies and heads have limits, unknown parameters are errors, and a sender that is silent
 *       for ten seconds is disconnected, except while it sends a list.
 * </ul>
 */
@NullMarked
package io.pmfs.daemon.control;

import org.jspecify.annotations.NullMarked;
