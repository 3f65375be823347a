/**
 * Tiers, which hold copies of files. A tier may forget anything at any time; only the backing store
 * ({@code io.pmfs.source}) can fail a read.
 *
 * <p><b>Start reading</b> at {@link Tier}, the contract. {@link DirectoryTier} keeps copies as
 * files: {@link CopyFiles} and {@link BundleFiles} map copies to files, {@link IncomingFile} is an
 * unfinished copy, {@link TierLock} excludes other daemons. {@link PoolTier} keeps copies in a
 * mapped memory: {@link Pool} allocates it, {@link IncomingAllocation} is an unfinished copy. Both
 * store small copies in {@link Bundles}, count their room in {@link Room} and keep their state in
 * {@link TierHealth}.
 *
 * <p><b>Threads.</b> The package starts none: everything runs on the caller's thread.
 *
 * <p><b>Lock order</b>, outermost first. A lock without a name is the monitor of its object.
 *
 * <pre>{@code
 * IncomingFile       < DirectoryTier < Bundles < BundleFile (of BundleFiles)
 * IncomingAllocation < PoolTier      < Bundles < PoolBundles < Pool
 * all of these       < TierHealth
 * }</pre>
 *
 * <ul>
 *   <li>Tiers do not call the package {@code stage} while holding these locks. {@link
 *       Tier.Census#forEachFile} calls its visitor without a lock, because the visitor takes locks
 *       whose holders call tiers.
 *   <li>{@link DirectoryTier} renames and removes files with its lock held, so that a replaced copy
 *       is counted once. It writes, syncs and opens them without. {@link Bundles} creates, examines
 *       and removes the file of a bundle with its lock held, and writes without. So on a disk that
 *       hangs, opening a copy that is a file does not wait for these locks, but opening a copy in a
 *       bundle may.
 *   <li>The state of {@link TierHealth} can be read without a lock. Its lock is held while the disk
 *       of a full tier is asked for its free space.
 * </ul>
 *
 * <p><b>Known deadlock.</b> A full tier gains room when copies leave sparse bundles, but moving
 * them takes room first. Cure: {@link Room#move} exceeds the capacity, and {@link PoolBundles}
 * keeps a spare bundle. For those of memory see {@link io.pmfs.memory}.
 *
 * <p><b>What may be forgotten.</b>
 *
 * <ul>
 *   <li>The backing store is authoritative. All copies may disappear, even while the tier is open:
 *       a missing copy is null, not an error.
 *   <li>A tier knows no versions, names or records: the records of the namespace determine of which
 *       version a copy is.
 *   <li>The counts of room and copies, and which part of a bundle is wanted, are derived. After an
 *       unclean stop they are unknown, and a tier that is not empty accepts no copies until a
 *       {@link Tier.Census} is taken. After a clean stop they are estimates until then.
 *   <li>Open files of bundles and mappings of large copies are caches.
 *   <li>An open {@link CopyReader} stays valid after its copy is removed: the last reader releases
 *       the allocation, or closes the bundle.
 * </ul>
 */
@NullMarked
package io.pmfs.tier;

import org.jspecify.annotations.NullMarked;
