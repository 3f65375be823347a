/**
 * Making copies without delaying readers.
 *
 * <p><b>Start reading</b> at {@link Stager#serve}: a copy of {@link Copies}, else a fetch, else the
 * source of {@link OpenSources}. A {@link Fetch} is a copy that is being filled; {@link Fetches}
 * has one for each file. {@link ReadThrough} fills fetches with what readers read, {@link
 * FetchThreads} behind readers, {@link Staging} for a task. {@link CopyIndex} makes each change to
 * records and copies. {@link Evictor} makes room, {@link TierComparison} compares a tier with the
 * records.
 *
 * <p><b>Threads.</b> Readers and tasks call on their own threads. {@link Stager} starts the rest,
 * and its {@code close} ends them: it waits at most 30 s for each kind.
 *
 * <ul>
 *   <li>{@code fetch-N}, as many as {@link StagerSettings} configures: the rest of large files,
 *       several for one file if its source proposes that and no other file waits, and verifying
 *       large copies before the kernel may read them.
 *   <li>{@code store-N}, {@link StagerSettings#STORE_THREADS}: write and compress the blocks that
 *       readers have read, and evict.
 *   <li>{@code compare-1}, until all tiers are compared with the records.
 *   <li>A dictionary is trained by the executor that the {@link CopyFormat} received.
 * </ul>
 *
 * <p><b>Lock order</b>, outermost first. A lock without a name is the monitor of its object; the
 * locks of a tier are in the package {@code tier}.
 *
 * <pre>{@code
 * Evictor.compacting < CopyIndex.recordLocks < TierComparison < a tier's locks
 *                      CopyIndex.recordLocks < Fetch, Lease (of HandleTable)
 * an entry of Fetches.running                < Fetch, a tier's locks
 * BlockWriter                                < DictionaryTraining, an unfinished copy's lock
 * Guests, recordLocks, Fetches.running       < the namespace's locks
 * }</pre>
 *
 * <ul>
 *   <li>With a record lock held do not take another one, call the drop listener, ask the source or
 *       use {@code Fetches.running}. Compaction, reordering of frames and the second look at a bad
 *       copy wait for memory of {@code store}, {@code frames} and {@code scratch} with a record
 *       lock held, so do not take a record lock while holding such memory.
 *   <li>The function given to {@code running.compute} must not use {@code running} or take a record
 *       lock.
 *   <li>With its monitor held a {@link Fetch} only releases memory and asks its {@link BlockWriter}
 *       for the record. The conditions that it checks while it waits only read flags.
 *   <li>The monitor of a {@link RawCopy} is held while the tier is read to verify a block, and
 *       those of an {@code OpenSource} of {@link OpenSources} and of a file of {@link
 *       BorrowingStore} while the source is asked whether it is the right file. Other readers of
 *       that file wait.
 * </ul>
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>A thread claims a block and then waits for memory or for the pace of its task, while a
 *       reader needs this block. Cure: first pace and memory, then the claim ({@link Staging},
 *       {@link FetchThreads}). A reader gets its claim first ({@link ReadThrough}). Without memory
 *       it gives the block back and reads the source directly: at once, or in a cluster after half
 *       a second in which no tier took a block.
 *   <li>A fetch that no thread will finish: tasks wait for its end, and the file gets no other.
 *       Cure: the INVARIANT of {@link Fetches}. A reader queues the rest of a large file before it
 *       reads its own block. A full queue, a failed read and a stop each end the fetch, which wakes
 *       all that wait for it.
 *   <li>Two threads hold record locks and each wants the other's: 64 locks serve all inodes. Cure:
 *       one lock at a time, or all in ascending order ({@link CopyIndex#whileNothingChanges}),
 *       called with none held.
 *   <li>Memory is held and waited for in a circle: see {@link io.pmfs.memory.DirectMemory}.
 *   <li>A count of a tier that starts again after each change never ends under load. Cure: {@link
 *       CopyIndex} reports each change to the {@link TierComparison}, which corrects its count.
 *   <li>A stop waits for a source that hangs. Cure: each wait has a limit; then {@link Stager}
 *       interrupts the fetch threads, gives up all fetches and continues.
 * </ol>
 *
 * <p><b>What may be forgotten.</b>
 *
 * <ul>
 *   <li>The records of the namespace are authoritative for which copies may be served, but no proof
 *       that a copy exists: {@link Copies} asks the tier.
 *   <li>The namespace may lose its records, and reports that. {@link TierComparison} then decides
 *       nothing, because a missing record proves nothing. While nothing can be recorded, no fetch
 *       starts.
 *   <li>{@code CopyIndex.where} is a cache of the records: see its INVARIANT. Whether a copy was
 *       verified is known in this session only.
 *   <li>A fetch may be given up at any time. Its readers continue with the tier or the source.
 *   <li>Open files ({@link HandleTable}), marks in {@link Fetches}, {@link CopiedFiles}, the
 *       recency of {@link LeastRecentlyUsed} and the cursor of {@link Guests} are caches and hints.
 *   <li>Which guests were copied for readers is known in this session only: those of an earlier
 *       session stay until their room is needed.
 * </ul>
 */
@NullMarked
package io.pmfs.stage;

import io.pmfs.stage.copies.CopiedFiles;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.CopyIndex;
import io.pmfs.stage.copies.Evictor;
import io.pmfs.stage.copies.Guests;
import io.pmfs.stage.copies.HandleTable;
import io.pmfs.stage.copies.LeastRecentlyUsed;
import io.pmfs.stage.copies.TierComparison;
import io.pmfs.stage.formats.BlockWriter;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.stage.formats.RawCopy;
import org.jspecify.annotations.NullMarked;
