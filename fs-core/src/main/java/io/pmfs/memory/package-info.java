/**
 * Memory outside the heap, and the bytes of a read that lie in it.
 *
 * <p><b>Start reading</b> at {@link DirectMemory}: one {@link BufferPool} for each kind of use;
 * their sum is known at the start. A pool lends a {@link BufferPool.Loan}; each user that retains
 * it releases it. {@link FramePool} caches decompressed frames for the next read. {@link
 * ReadResult} is what a read yields, wherever the bytes are, and {@link ReadSink} receives it piece
 * by piece.
 *
 * <p><b>Threads.</b> The package starts none. A thread that waits for memory checks every 100 ms
 * whether to give up.
 *
 * <p><b>Lock order</b>, outermost first; each is the monitor of its object.
 *
 * <pre>{@code
 * FramePool < Loan, BufferPool
 * }</pre>
 *
 * <p>A loan returns its memory after releasing its own lock, so releasing takes no lock of a {@link
 * FramePool}.
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>Threads hold memory and wait for more, in a circle. Cure: a pool for each kind of use, and
 *       the ORDER of waiting in {@link DirectMemory}. A reader's pool is not waited for ({@link
 *       BufferPool#tryAcquire}), or in a cluster while tiers take blocks from it.
 *   <li>A request larger than the pool would wait forever. Cure: {@link BufferPool} throws instead.
 *   <li>The borrower of a frame passes it to {@link FramePool#put}, which takes the lock of the
 *       pool, before it releases its loan. A thread that waited for memory with that lock held
 *       would wait for this borrower. Cure: {@link FramePool#take} waits with only the lock of the
 *       {@link BufferPool}, which {@code wait} releases.
 * </ol>
 *
 * <p><b>What may be forgotten.</b> Frames in the {@link FramePool} are a cache; a dropped frame
 * stays valid for its borrowers. A pool never returns memory to the JVM. If the JVM cannot allocate
 * any, {@link BufferPool#tryAcquire} returns null as if all were lent.
 *
 * <p>A {@link ReadResult} is valid only during the call that passes it. If a sink throws, the piece
 * counts as not received, and the same range may be offered again from another tier or the source.
 */
@NullMarked
package io.pmfs.memory;

import org.jspecify.annotations.NullMarked;
