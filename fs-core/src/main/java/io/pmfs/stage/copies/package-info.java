/**
 * Which tier holds a copy of which file, and which copies are evicted when room is short.
 *
 * <p><b>Start reading</b> at {@link Copies}, which reads copies and drops those that do not match
 * their checksums, and at {@link CopyIndex}, the only class that changes the state of a copy: its
 * record in the namespace, and its {@link Whereabouts}, one byte for each inode in {@link
 * InodeBytes}. {@link Evictor} keeps room free ahead of need by an {@link EvictionPolicy}; {@link
 * Guests} are copies of other nodes' files, which are evicted first. {@link TierComparison}
 * compares a tier with the records after an unclean stop, while the tier serves.
 *
 * <p><b>What must hold.</b>
 *
 * <ul>
 *   <li>A tier is named for a file only after the copy was committed and recorded, or was read from
 *       the records. The reverse is never assumed: a tier may have forgotten any copy.
 *   <li>A record is changed with its record lock held, one lock at a time; see the lock order in
 *       {@code io.pmfs.stage}.
 *   <li>{@link CopiedFiles}, {@link HandleTable} and the ages of {@link LeastRecentlyUsed} are
 *       hints: each may lose anything at any time.
 * </ul>
 *
 * <p><b>Threads.</b> None starts here. Readers call {@link Copies}; eviction and comparison run on
 * threads of the stager.
 */
@NullMarked
package io.pmfs.stage.copies;

import org.jspecify.annotations.NullMarked;
