/**
 * The archive of {@code pmfs bugreport}: gets pieces one by one within limits, removes their
 * secrets and writes them as files of a tar.gz. Depends neither on the commands nor on the daemon;
 * {@code io.pmfs.cli} passes in what to ask.
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.cli.bugreport;
