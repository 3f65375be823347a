/**
 * The archive of {@code pmfs bugreport}: a {@link Report} gets the pieces of a list one by one
 * within limits, removes their secrets and writes them as files of a tar.gz. Depends neither on the
 * commands nor on the daemon; {@code io.pmfs.cli.BugreportPieces} has the list.
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.cli.bugreport;
