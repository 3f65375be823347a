/**
 * Memory outside the heap, and the bytes of a read that lie in it.
 *
 * <p><b>Start reading</b> at {@link DirectMemory}: one {@link BufferPool} for each kind of use, of
 * which the sum is known at the start. A pool lends a {@link BufferPool.Loan}, which all who retain
 * it release. {@link FramePool} keeps decompressed frames that the next read may want. {@link
 * ReadResult} is what a read yields, wherever its bytes are, and {@link ReadSink} receives it piece
 * by piece.
 *
 * <p><b>Threads.</b> The package starts none. A thread that waits for memory looks every 100 ms
 * whether it should give up.
 *
 * <p><b>Lock order</b>, outermost first; each is the monitor of its object.
 *
 * <pre>{@code
 * FramePool < Loan, BufferPool
 * }</pre>
 *
 * <p>A loan gives its memory back after its own lock is free, so releasing takes no lock of a
 * {@link FramePool}.
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>Threads hold memory and wait for more, in a circle. Cure: a pool for each kind of use, and
 *       the ORDER of waiting in {@link DirectMemory}. A reader's pool is not waited for ({@link
 *       BufferPool#tryAcquire}), or in a cluster while tiers take blocks from it.
 *   <li>A loan that is larger than a pool can ever lend would wait for ever. Cure: {@link
 *       BufferPool} throws before it waits.
 *   <li>The borrower of a frame passes it to {@link FramePool#put}, which takes the lock of the
 *       pool, before it releases its loan. A thread that waited for memory with that lock held
 *       would wait for this borrower. Cure: {@link FramePool#take} waits with the lock of the
 *       {@link BufferPool} only, which {@code wait} gives up.
 * </ol>
 *
 * <p><b>What may be forgotten.</b> Frames in the {@link FramePool} are a cache; one that is dropped
 * stays valid for its borrowers. Memory that a pool once had from the JVM stays with the pool. If
 * the JVM has none, {@link BufferPool#tryAcquire} returns null as if all were lent.
 *
 * <p>A {@link ReadResult} is valid only during the call that passes it. If a sink throws, the piece
 * counts as not received, and the same range may come again from another place.
 */
@NullMarked
package io.pmfs.memory;

import org.jspecify.annotations.NullMarked;
