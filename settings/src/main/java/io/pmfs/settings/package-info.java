/**
 * The options of a mount: their declarations, the origins of their texts, and their values.
 *
 * <p><b>Start reading</b> at {@link MountOption}: each option is declared there once, by a {@link
 * Declaration}. Command line, help, completion, variables, files and manual derive from it.
 *
 * <ol>
 *   <li>{@link Configuration} determines which text of an option counts: command line, then
 *       environment, then the file's section for the mount point, then the file's common keys, then
 *       the default. Each {@link Setting} has its text and its origin. {@link ConfigurationFile}
 *       reads a file.
 *   <li>{@link OptionValues} parses the texts. Each error names the option and the origin.
 *   <li>{@link MountSettings} is the result: a record for each part of the program, which takes the
 *       values of its own options ({@link CopySettings}, {@link BridgeSettings}, {@link
 *       ClusterOptions} and so on).
 *   <li>{@link SessionSettings} are saved in a file for the session's later daemons.
 * </ol>
 *
 * <p>A new option is a constant of {@link MountOption} and a component of one of these records.
 *
 * <p><b>Threads.</b> Everything is immutable and runs on the caller's thread. Parsing an option
 * that names a file reads the file, and so waits for its file system.
 *
 * <p><b>What survives.</b> Files, variables and symbolic links may change while a mount exists. So
 * {@link SessionSettings#begin} stores the values that depend on them, with the secret of the
 * cluster, and a later daemon reads nothing else ({@link OptionValues#resumed}). The file has mode
 * 0600 and replaces its predecessor by a rename. Reports contain {@link SessionSettings#toReport},
 * without the secret. Unknown options of a later version are ignored.
 *
 * <p><b>Untrusted texts and files.</b>
 *
 * <ul>
 *   <li>A variable or a file is trusted as much as the users who can write it. Root reads only a
 *       configuration file that no other user can change; other users may use a shared one. A file
 *       has at most 1 MiB and only absolute paths.
 *   <li>{@link MountOption#USER} and {@link MountOption#PASSTHROUGH_CAPABILITY} cannot be set in a
 *       file.
 *   <li>Places that pmfs writes to are resolved by {@link io.pmfs.places.OwnPath}, and so is the
 *       source if other users may enter the mount ({@link OptionValues#sourcePlace}). Secrets and
 *       keys are read only from files that no other user can replace.
 *   <li>{@link Configuration#suspectVariables} reports variables that look like a mistyped option.
 *       Unknown keys in a file are errors.
 * </ul>
 */
@NullMarked
package io.pmfs.settings;

import org.jspecify.annotations.NullMarked;
