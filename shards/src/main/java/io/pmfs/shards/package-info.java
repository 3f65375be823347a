/**
 * Datasets in tar files, served without unpacking. A member is a range of its shard, so the index
 * is one table of ranges.
 *
 * <p><b>Start reading</b> at {@link ShardStore}, the source that the rest of the program sees.
 *
 * <ul>
 *   <li>Opening: {@link ShardSet} finds the tar files of a directory and how they are shown, {@link
 *       ShardSource} opens a matching index, or builds one with {@link IndexBuilder}.
 *   <li>Building: {@link TarScanner} finds the members of one shard, with {@link HeaderReader},
 *       {@link PaxHeader}, {@link OldSparse} and {@link SparseMap}. {@link IndexWriter} sorts what
 *       all scans found, and {@link HardLinks} finds the file of each link. The last member with a
 *       name wins, as when tar unpacks.
 *   <li>Reading: {@link ShardIndex} is the table ({@link IndexFormat}, docs/formats.md), {@link
 *       OpenShards} keeps shards open, {@link MemberFile} is an open member. {@link
 *       CompressedShard} is a shard in the zstd seekable format, and {@link FrameCache} caches its
 *       frames. {@link ShardSequence} reads a shard from front to back for a task.
 * </ul>
 *
 * <p><b>Threads.</b> {@code index-N} scan shards, as many as {@link IndexBuilder} is configured
 * with. They have ended when the build returns, even if it fails: the first failure stops the
 * others. Reads run on the caller's thread.
 *
 * <p><b>Lock order</b>, outermost first.
 *
 * <pre>{@code
 * OpenShards < OpenShard
 * a lock of FrameCache < those of io.pmfs.memory
 * }</pre>
 *
 * <ul>
 *   <li>A shard is opened while holding the lock of its {@link OpenShards.OpenShard}, so only
 *       readers of this shard wait for it. {@link OpenShards} closes unused shards while holding
 *       both locks.
 *   <li>A frame is read and decompressed while holding one of the eight locks of {@link
 *       FrameCache}, so that it is decompressed only once, and at most eight frames at a time.
 * </ul>
 *
 * <p><b>Known deadlock.</b> A thread that loads a frame holds memory for its content and waits for
 * memory for the stored frame. Cure: the order of {@link io.pmfs.memory.DirectMemory}; a shard with
 * frames larger than any pool can lend is rejected when opened.
 *
 * <p><b>What may be forgotten</b>
 *
 * <ul>
 *   <li>The index can be built again from the shards. It replaces an older one by a rename; the
 *       next build removes the files of a killed one. Unchanged shards are taken over from an older
 *       index without reading them ({@link ShardIndex#canLend}).
 *   <li>A mount that continues needs the index with which it started: {@link
 *       ShardStore#fingerprint}.
 *   <li>A shard is identified by name, size and modification time. Reading one that changed since
 *       it was indexed fails with ESTALE: this is checked when it is opened, and once a second
 *       while it is read. {@link ShardIdentities} assigns its members new identities at the next
 *       mount, so that their copies are not used.
 * </ul>
 *
 * <p><b>Untrusted tar files.</b> Their bytes may be anything. {@link MemberPath} rejects names that
 * lead outside or that no file system can have; such members are left out and counted ({@link
 * Warning}). Extended headers, names, maps of sparse files and frames have limits. A file that is
 * no valid tar file makes the mount fail, with the offset ({@link ShardException}).
 */
@NullMarked
package io.pmfs.shards;

import org.jspecify.annotations.NullMarked;
