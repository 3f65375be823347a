/**
 * Datasets in tar files, served without unpacking. A member is a range of its shard, so the index
 * is one table of ranges.
 *
 * <p><b>Start reading</b> at {@link ShardStore}, the source that the rest of the program sees.
 *
 * <ul>
 *   <li>Opening: {@link ShardSet} finds the tar files of a directory and how they are shown, {@link
 *       ShardSource} opens an index that fits them, or has {@link IndexBuilder} make one.
 *   <li>Building: {@link TarScanner} finds the members of one shard, with {@link HeaderReader},
 *       {@link PaxHeader}, {@link OldSparse} and {@link SparseMap}. {@link IndexWriter} sorts what
 *       all scans found, and {@link HardLinks} finds the file of each link. The last member with a
 *       name wins, as when tar unpacks.
 *   <li>Reading: {@link ShardIndex} is the table ({@link IndexFormat}, docs/formats.md), {@link
 *       OpenShards} keeps shards open, {@link MemberFile} is an open member. {@link
 *       CompressedShard} is a shard in the zstd seekable format, and {@link FrameCache} has its
 *       frames. {@link ShardSequence} reads a shard from front to back for a task.
 * </ul>
 *
 * <p><b>Threads.</b> {@code index-N} scan shards, as many as {@link IndexBuilder} was made with.
 * They have ended when the build returns, also if it fails: the first failure stops the others.
 * Nothing else is started; reads run on the caller's thread.
 *
 * <p><b>Lock order</b>, outermost first.
 *
 * <pre>{@code
 * OpenShards < OpenShard
 * a lock of FrameCache < those of io.pmfs.memory
 * }</pre>
 *
 * <ul>
 *   <li>The source opens a shard with the lock of that {@link OpenShards.OpenShard} held, so only
 *       readers of this shard wait for it. {@link OpenShards} closes unused shards with both held.
 *   <li>A frame is read and decompressed with one of the eight locks of {@link FrameCache} held, so
 *       that it is decompressed once and at most eight are at a time.
 * </ul>
 *
 * <p><b>Known deadlock.</b> A thread that loads a frame holds memory for its content and waits for
 * memory for the stored frame. Cure: the order of {@link io.pmfs.memory.DirectMemory}; a shard with
 * frames that no pool can lend is refused when it is opened.
 *
 * <p><b>What may be forgotten</b>
 *
 * <ul>
 *   <li>The index can be built again from the shards. It replaces an older one by a rename, and
 *       what a killed build left is removed by the next. Unchanged shards are taken over from an
 *       older index without reading them ({@link ShardIndex#canLend}).
 *   <li>A mount that continues needs the index with which it began: {@link ShardStore#fingerprint}.
 *   <li>A shard is known by name, size and modification time. One that changed since it was indexed
 *       is ESTALE, which is looked for when it is opened and once a second while it is read, and
 *       never other bytes. {@link ShardIdentities} gives its members other identities at the next
 *       mount, so no copy of theirs is used.
 * </ul>
 *
 * <p><b>What a tar file is allowed to do.</b> Its bytes may be anything. {@link MemberPath} accepts
 * no name that leads outside or that no file system could have; such members are left out and
 * counted ({@link Warning}). Extended headers, names, maps of sparse files and frames have limits.
 * A file that is no valid tar file makes the mount fail, with the offset ({@link ShardException}).
 */
@NullMarked
package io.pmfs.shards;

import org.jspecify.annotations.NullMarked;
