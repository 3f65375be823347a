/**
 * What a mount does, for people and scripts: {@code status}, its watch and {@code profile}.
 *
 * <p><b>Start reading</b> at {@link StatusCommand}: it asks the daemons for their reports and shows
 * them, as JSON or by {@link StatusTable}, of which {@link StatusHeadline} is the first lines.
 * {@link NodesTable} shows the nodes of a cluster. With {@code --watch}, {@link StatusWatch} asks
 * again and again, {@link WatchBlock} says what happened between two reports, and {@link
 * WatchScreen} paints it. {@link ProfileCommand} sums requests: of a mount from now on ({@link
 * ProfileWatch}), or of the files of an access log.
 *
 * <p>A new figure is a component of a report in {@code io.pmfs.daemon.report}; JSON has it then,
 * and the tables here show it if somebody writes the words.
 *
 * <p><b>Threads.</b> {@code strangers-N}, up to eight for each other user, ask the daemons of other
 * users ({@link Replies}); they are interrupted when all have answered or the time is over. The
 * stream of {@link ProfileWatch} calls back on a thread of the client. Both end before the command
 * does. A signal ends a watch after the round that is being shown.
 *
 * <p><b>What a daemon of another user is allowed to do.</b> Answer anything, late or never. All
 * daemons of one user have ten seconds and half a MiB together; whatever goes wrong is one failure
 * of that mount and keeps no other from being shown. A report is rendered in every form before it
 * counts, so that a field that cannot be shown fails there. Text is made printable.
 *
 * <p><b>Exit status.</b> 4 if a mount does not help its readers or cannot keep what it should; each
 * reason is a line on standard error. The words are those of the report's verdict.
 */
@NullMarked
package io.pmfs.cli.status;

import org.jspecify.annotations.NullMarked;
