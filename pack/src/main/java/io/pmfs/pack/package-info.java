/**
 * Writes a dataset as tar files with an index, and checks such a pack.
 *
 * <p><b>Start reading</b> at {@link Packer}, which has four steps:
 *
 * <ol>
 *   <li>{@link SourceWalk} lists the source into a {@link SourceTree}.
 *   <li>{@link PackPlan} assigns its files to shards. The plan depends only on the tree, the order
 *       ({@link PackOrder}) and the size of a shard, so the same source gives the same bytes. Files
 *       of one sample, and all names of one file, stay together.
 *   <li>{@link ShardWriter} writes one shard after the other, in several threads; {@link
 *       SourceReader} reads ahead for it, {@link TarMember} makes headers, {@link ShardOutput}
 *       syncs and has the checksum. A shard contains the directories of its files, so it can be
 *       unpacked alone.
 *   <li>The index is built by {@code io.pmfs.shards}, and the {@link PackManifest} is written.
 * </ol>
 *
 * <p>{@link PackCheck} compares the shards of a finished pack with their checksums. {@link
 * PackProgress} is what both report, and how they are cancelled.
 *
 * <p><b>Threads.</b> {@link SourceWalk} lists with as many threads as {@link PackSettings#jobs} and
 * asks for attributes with as many more; later as many read files, and one thread for each
 * processor writes a shard ({@link Parallel}). All have ended when {@link Packer#run} returns or
 * throws. The first failure cancels the others.
 *
 * <p><b>Locks.</b> {@link SourceWalk}, the marker of {@link PackDirectory} and each {@link
 * ReadFile} have their own; none calls another. A {@link ReadFile} opens its file with its own
 * held. If all who ask for attributes are busy, the thread that lists asks itself, so neither waits
 * for the other.
 *
 * <p><b>What survives</b>
 *
 * <ul>
 *   <li>While a pack is written, its directory has a marker that names source and options and lists
 *       the finished shards. A shard gets its name and its line when it is synced. So the same
 *       command continues after a crash: it keeps the shards that are still planned like that and
 *       match their checksums, and removes the others.
 *   <li>The manifest comes last and makes the pack complete. A directory with a marker is not a
 *       dataset, and one with anything else in it is not written to.
 *   <li>The marker is locked while a pack runs, where the file system has locks.
 *   <li>A file that cannot be read, or that changes meanwhile, is tried twice and then left out and
 *       reported. The pack is complete without it only if the user allowed that.
 * </ul>
 */
@NullMarked
package io.pmfs.pack;

import org.jspecify.annotations.NullMarked;
