/**
 * The archive of {@code pmfs bugreport}: pieces that are got one by one within limits, have their
 * secrets removed and become files of a tar.gz. It knows nothing of commands and of the daemon;
 * {@code io.pmfs.cli} hands it what to ask.
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.cli.bugreport;
