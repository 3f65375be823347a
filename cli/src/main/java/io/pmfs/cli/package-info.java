/**
 * The command line.
 *
 * <p><b>Start reading</b> at {@link Main}, the entry point: the real process, its streams and its
 * exit. {@link PmfsCommand} has the list of commands and reports their errors. A command is a
 * {@code Callable} with picocli's annotations: it returns a status of {@code ExitStatus}, or throws
 * a {@code MountFailure}, which is shown as one line. Commands are in packages by subject: {@code
 * mount}, {@code status}, {@code tasks}, {@code copies}, {@code doctor}; the rest is here. {@code
 * control} is the client of daemons.
 *
 * <p>A new command is a class and its line in {@link PmfsCommand}; docs/changing.md lists the rest.
 * {@link Documentation} and {@link ExitStatuses} are for help and manual pages, which are generated
 * from the annotations.
 *
 * <p><b>Threads.</b> A command runs on the main thread and ends with the process; {@code pmfs
 * mount} becomes the daemon. Signals run actions that the command registered ({@code Invocation}),
 * on threads of the JVM; an action only sets a flag. {@code progress} shows the progress of {@code
 * pack} until its display is closed.
 *
 * <p><b>What is shown.</b> Names in datasets and answers of daemons are not trusted. All output
 * passes through {@code Invocation}, which makes every line printable, including JSON. Results are
 * written to standard output, messages to standard error. Only {@link Main} reads the environment
 * of the process: commands receive {@code Surroundings}.
 *
 * <p><b>Time.</b> {@link PmfsCommand} builds only the requested command, because building all
 * options takes longer than most commands run.
 */
@NullMarked
package io.pmfs.cli;

import org.jspecify.annotations.NullMarked;
