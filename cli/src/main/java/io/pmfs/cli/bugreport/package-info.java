/**
 * The archive of {@code pmfs bugreport}: a {@link Report} fetches a list of pieces within limits,
 * removes secrets and writes them as files of a tar.gz. Depends neither on the commands nor on the
 * daemon; {@code io.pmfs.cli.BugreportPieces} has the list.
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.cli.bugreport;
