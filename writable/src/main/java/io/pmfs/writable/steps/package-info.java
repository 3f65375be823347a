/**
 * The steps by which changes are made at the source.
 *
 * <p>{@link io.pmfs.writable.steps.SourceSteps} says which class makes which kind of change: {@link
 * io.pmfs.writable.steps.NameStep}, {@link io.pmfs.writable.steps.RenameStep} and {@link
 * io.pmfs.writable.steps.ContentStep}. Each looks what is there, does what is missing, and returns
 * a {@link io.pmfs.writable.steps.Recording}, which the committer commits with the rest; so a step
 * can be made twice. What a former process has done is known by proofs that were on the disk before
 * ({@link io.pmfs.writable.journal.Intent}), never by size and time; {@link
 * io.pmfs.writable.steps.OwnVersions} compares a file with them.
 *
 * <p>What is done to a file is done to an open one ({@link
 * io.pmfs.writable.tree.SourceTree.Directory#node}): other users may give its name to another.
 *
 * <p>What follows when a change was made, a sync or the setting of rights and times, is the rest of
 * a step. If that fails, the change is recorded as made and waits for its rest only ({@link
 * io.pmfs.writable.steps.Completion}). Times of a directory that cannot be set become a change of
 * their own ({@link io.pmfs.writable.steps.DirectoryTimes}).
 *
 * <p>Contents are copied ahead of their turn, complete and under temporary names ({@link
 * io.pmfs.writable.steps.Copies}). {@link io.pmfs.writable.steps.Actors} makes calls as the user
 * who asked for a change. What another program changed is kept beside ({@link
 * io.pmfs.writable.steps.Conflicts}).
 *
 * <p>All belong to the committer's thread, but {@code Conflicts} and {@code Pace}, which many
 * threads may use, and {@code Copies}, which has copiers of its own.
 */
@NullMarked
package io.pmfs.writable.steps;

import org.jspecify.annotations.NullMarked;
