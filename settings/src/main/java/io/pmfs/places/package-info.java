/**
 * The places of pmfs on disk: tiers and state directories, how they are checked, opened, emptied,
 * and who else could change them.
 *
 * <p><b>Start reading</b> at {@link TierSpec}, one tier as configured, and {@link TierPlace}, what
 * its path names. {@link TierKind} makes the one from the other: {@link DirectoryPlace}, with a
 * directory for each dataset, or {@link PoolPlace}, a device or file with all copies in it. {@link
 * DefaultTier} chooses a place if none was named. {@link DatasetDirectory} is the directory of one
 * dataset in a tier or a {@link StatePlace}, and {@link Holding} says what is in it. {@link
 * Surroundings} are the environment, user and root directory of a command, which tests replace.
 *
 * <p>To add a kind of tier, write its {@link TierPlace} and add it to {@link TierKind#ALL}: no
 * other code depends on the type of a place.
 *
 * <p><b>Threads.</b> The package starts none and has no locks in memory.
 *
 * <p><b>Who else can change a place.</b> {@link OwnPath} is the only way to a directory of pmfs by
 * its name (docs/decisions/0051). It walks from / on, looks at each component without following
 * links ({@link OwnWalk}) and refuses one that neither root nor this user owns, or in which others
 * may write ({@link TrustedUsers}). In a sticky directory others may make entries, so each entry is
 * checked when it is used. It returns the path without links; the caller uses that one.
 *
 * <ul>
 *   <li>{@link OwnPath#directory} is for what pmfs makes, {@link OwnPath#file} for what it only
 *       opens, {@link OwnPath#filledDirectory} for a directory that may have been another's, {@link
 *       OwnPath#resolve} for a path that the user named.
 *   <li>A group counts as others unless all of its members are root or this user.
 *   <li>{@link NotOwnException} says which component, who, and often the command that closes it.
 * </ul>
 *
 * <p><b>What is removed, and what is not</b>
 *
 * <ul>
 *   <li>A mount locks a file in each {@link DatasetDirectory} that it uses. {@link
 *       DatasetDirectory#purge} removes nothing that is locked, and keeps the lock until all else
 *       is gone.
 *   <li>A directory with the mark of {@link DatasetDirectory#markUnsaved} may hold the only copy of
 *       a user's files. Neither {@link TierPlace#purge} nor {@link TierPlace#wipe} removes it. The
 *       mark is synced.
 *   <li>A pool has no directories: it holds one dataset, and emptying it empties all.
 *   <li>Copies are dispensable. {@link Holding#lastUsed} and the path of the source are for people.
 * </ul>
 */
@NullMarked
package io.pmfs.places;

import org.jspecify.annotations.NullMarked;
