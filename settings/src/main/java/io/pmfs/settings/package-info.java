/**
 * The options of a mount: what they are, where their texts come from, and what they mean. It starts
 * nothing.
 *
 * <p><b>Start reading</b> at {@link MountOption}: each option is declared there once, by a {@link
 * Declaration}. Command line, help, completion, variables, files and manual derive from it.
 *
 * <ol>
 *   <li>{@link Configuration} decides which text of an option counts: command line, then
 *       environment, then the file's section for the mount point, then the file's common keys, then
 *       the default. Each {@link Setting} has its text and its origin. {@link ConfigurationFile}
 *       reads a file.
 *   <li>{@link OptionValues} parses the texts. Each error names the option and the origin.
 *   <li>{@link MountSettings} is the result: a record for each part of the program, which takes the
 *       values of its own options ({@link CopySettings}, {@link BridgeSettings}, {@link
 *       ClusterOptions} and so on).
 *   <li>{@link SessionSettings} is what a session keeps in a file, for its later daemons.
 * </ol>
 *
 * <p>A new option is a constant of {@link MountOption} and a component of one of these records.
 *
 * <p><b>Threads.</b> Everything is immutable and runs on the caller's thread. Parsing an option
 * that names a file reads it, and so waits for its file system.
 *
 * <p><b>What survives.</b> Files, variables and symbolic links may change while a mount lives. So
 * {@link SessionSettings#begin} pins the values that depend on them, with the secret of the
 * cluster, and a later daemon reads nothing else ({@link OptionValues#resumed}). The file has mode
 * 0600 and replaces its predecessor by a rename. What is shown of it is {@link
 * SessionSettings#toReport}, which has no secret. Options of a later version that this one does not
 * know are left out.
 *
 * <p><b>What texts and files from outside are allowed to do.</b>
 *
 * <ul>
 *   <li>A variable or a file is worth as much as the user who can write it. Root reads only a
 *       configuration file that nobody else can change; other users may use a shared one. It has at
 *       most 1 MiB, and its paths are absolute.
 *   <li>{@link MountOption#USER} and {@link MountOption#PASSTHROUGH_CAPABILITY} cannot be set in a
 *       file.
 *   <li>Places that pmfs writes to are resolved by {@link io.pmfs.places.OwnPath}, and so is the
 *       source if other users may enter the mount ({@link OptionValues#sourcePlace}). A secret or a
 *       key is read only from a file that nobody else can replace.
 *   <li>{@link Configuration#suspectVariables} reports variables that look like a mistyped option.
 *       Unknown keys in a file are errors.
 * </ul>
 */
@NullMarked
package io.pmfs.settings;

import org.jspecify.annotations.NullMarked;
