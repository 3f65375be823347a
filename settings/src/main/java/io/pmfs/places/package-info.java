/**
 * The places of pmfs on disk: tiers and state directories, how they are checked, opened, emptied,
 * and who else could change them.
 *
 * <p><b>Start reading</b> at {@link TierSpec}, one tier as configured, and {@link TierPlace}, what
 * its path names. {@link TierKind} creates a place: {@link DirectoryPlace}, with a directory for
 * each dataset, or {@link PoolPlace}, a device or file with all copies in it. {@link DefaultTier}
 * chooses a place if none was named. {@link DatasetDirectory} is the directory of one dataset in a
 * tier or a {@link StatePlace}, and {@link StoredDataset} describes its content. {@link
 * Surroundings} are the environment, user and root directory of a command, which tests replace.
 *
 * <p>To add a kind of tier, write its {@link TierPlace} and add it to {@link TierKind#ALL}: no
 * other code depends on the type of a place.
 *
 * <p><b>Threads.</b> The package starts none and has no locks in memory.
 *
 * <p><b>Who else can change a place.</b> {@link OwnPath} checks every path to a directory of pmfs
 * (docs/decisions/0051). It walks from / on, examines each component without following links
 * ({@link OwnWalk}) and rejects one that neither root nor this user owns, or in which others may
 * write ({@link TrustedUsers}). In a sticky directory others may create entries, so each entry is
 * checked when used. The caller must use the returned path, which has no links.
 *
 * <ul>
 *   <li>{@link OwnPath#directory} is for directories that pmfs creates, {@link OwnPath#file} for
 *       files that it only opens, {@link OwnPath#filledDirectory} for a directory that another user
 *       may have been able to change, {@link OwnPath#resolve} for a path that the user named.
 *   <li>A group counts as another user unless all its members are root or this user.
 *   <li>{@link NotOwnException} names the component, the other user, and often the command to
 *       revoke the permission.
 * </ul>
 *
 * <p><b>Removing</b>
 *
 * <ul>
 *   <li>A mount locks a file in each {@link DatasetDirectory} that it uses. {@link
 *       DatasetDirectory#purge} removes nothing that is locked, and keeps the lock until everything
 *       else is removed.
 *   <li>A directory with the mark of {@link DatasetDirectory#markUnsaved} may hold the only copy of
 *       a user's files. {@link DatasetDirectory#purge} does not remove it. The mark is fsynced.
 *   <li>A pool has no directories: it holds one dataset, and is emptied as a whole.
 *   <li>Copies are dispensable. {@link StoredDataset#lastUsed} and the path of the source are only
 *       shown to users.
 * </ul>
 */
@NullMarked
package io.pmfs.places;

import org.jspecify.annotations.NullMarked;
