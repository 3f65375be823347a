/**
 * The interface of a dataset's source, and stores that wrap others.
 *
 * <p><b>Start reading</b> at {@link BackingStore} and {@link SourceFile}, the two contracts. {@link
 * SourceStatus}, {@link SourceAccess} and {@link StoreStatistics} are their answers; a {@link
 * SourceSequence} reads files stored one after the other in a large file. The stores with files are
 * elsewhere: {@code DirectoryStore} (system calls), {@code ShardStore} (tar files), {@code
 * PeerStore} (other nodes), {@code CachedStore} (the cache of this node).
 *
 * <ul>
 *   <li>{@link CountedBackingStore} counts requests to the source; {@link SourceOperations} are the
 *       counts.
 *   <li>{@link ReopenedStore} is the source of a mount that another daemon took over.
 *   <li>{@link ForwardingStore} is for stores that change only some requests.
 * </ul>
 *
 * <p>A new method of {@link BackingStore} must be forwarded by each of these three: otherwise its
 * default silently disables it.
 *
 * <p><b>Threads.</b> The package starts none: requests run on the caller's thread and take as long
 * as the source takes. {@link ReopenedStore} occupies one thread, which its caller provides, until
 * the source is open or {@link ReopenedStore#close} interrupts it. If that thread cannot be
 * started, requests open the source, at most one a second.
 *
 * <p><b>Known deadlock.</b> A daemon takes over a mount whose source is unavailable, and each
 * request waits for the source. Cure: {@link ReopenedStore} makes requests wait for the first
 * attempt only; later ones fail with the error of the last attempt. Its {@code close} wakes all of
 * them and does not wait for an attempt that hangs. The monitor is not held while the source is
 * opened.
 *
 * <p><b>Second-hand answers.</b> Names, attributes and content may come from another node ({@link
 * BackingStore#isSecondHand}). Then {@link BackingStore#ownStatus} and {@link BackingStore#access}
 * still ask the source itself, and {@link SourceFile#prove} fails if the file is not of the version
 * that was opened. A path is relative to the root, and no store follows symbolic links in it.
 */
@NullMarked
package io.pmfs.source;

import org.jspecify.annotations.NullMarked;
