/**
 * The activity of mounts, for users and scripts: {@code status}, its watch and {@code profile}.
 *
 * <p><b>Start reading</b> at {@link StatusCommand}: it asks the daemons for their reports and shows
 * them, as JSON or by {@link StatusTable}, which begins with a {@link StatusHeadline}. {@link
 * NodesTable} shows the nodes of a cluster. With {@code --watch}, {@link StatusWatch} asks
 * repeatedly, {@link WatchBlock} compares two reports, and {@link WatchScreen} shows the result.
 * {@link ProfileCommand} sums up requests to a mount ({@link ProfileWatch}) or in an access log.
 *
 * <p>A new figure is a component of a report in {@code io.pmfs.daemon.report}, which adds it to
 * JSON; the tables here must be extended by hand.
 *
 * <p><b>Threads.</b> {@code strangers-N}, up to eight for each other user, ask the daemons of other
 * users ({@link Replies}); they are interrupted when all have answered or the time is over. The
 * stream of {@link ProfileWatch} calls back on a thread of the client. Both end before the command
 * does. A signal ends a watch after the current round.
 *
 * <p><b>What a daemon of another user is allowed to do.</b> Answer anything, late or never. All
 * daemons of one user share a time limit and half a MiB; any fault is a failure of that mount only.
 * A report is rendered in every form before it is accepted, so that a bad field fails there. Text
 * is made printable.
 *
 * <p><b>Exit status.</b> 4 if a mount does not help its readers or cannot record its state; each
 * reason is a line on standard error, in the words of the report's verdict.
 */
@NullMarked
package io.pmfs.cli.status;

import org.jspecify.annotations.NullMarked;
