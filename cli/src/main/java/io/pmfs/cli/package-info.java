/**
 * The command line: what a person types and reads.
 *
 * <p><b>Start reading</b> at {@link Main}, the edge of the program: the real process, its streams
 * and its exit. {@link PmfsCommand} has the list of commands and reports their errors. A command is
 * a {@code Callable} with picocli's annotations: it returns a status of {@code ExitStatus}, or
 * throws a {@code MountFailure}, of which the user sees one line. Commands are in packages by what
 * they are about: {@code mount}, {@code status}, {@code tasks}, {@code copies}, {@code doctor}; the
 * rest is here. {@code control} is the client of daemons.
 *
 * <p>A new command is a class and its line in {@link PmfsCommand}; docs/changing.md says what else.
 * {@link Documentation} and {@link ExitStatuses} are for help and manual pages, which derive from
 * the annotations.
 *
 * <p><b>Threads.</b> A command runs on the main thread and ends with the process; {@code pmfs
 * mount} becomes the daemon. Signals run what the command registered ({@code Invocation}), on
 * threads of the JVM: an action only says that it is over. {@code progress} shows the progress of
 * {@code pack} until its display is closed.
 *
 * <p><b>What is shown.</b> Names in datasets and answers of daemons may be anything. All output
 * goes through {@code Invocation}, which makes every line printable, JSON too. Standard output has
 * what was asked for, standard error the rest. {@link Main} alone takes the environment from the
 * process: commands get {@code Surroundings}.
 *
 * <p><b>Time.</b> The options of all commands take longer to build than most commands take to run.
 * {@link PmfsCommand} builds only the command that was named.
 */
@NullMarked
package io.pmfs.cli;

import org.jspecify.annotations.NullMarked;
