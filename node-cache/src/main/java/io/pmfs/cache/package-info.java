/**
 * One cache for all users of a node: the service that makes and keeps copies, and the source of a
 * mount that reads them.
 *
 * <p><b>Start reading</b> at {@link CachedStore}, the source as a mount reads it. Its {@link
 * CacheClient} passes open files of the source to the {@link CacheService} in a {@link
 * CacheMessage}; there a {@link Session} answers. {@link SharedCopies} manages the copies: {@link
 * KnownCopies} finds them, {@link CopyRoom} accounts for their space per {@link CacheUser}, {@link
 * Eviction} chooses what to evict. {@link Copier} has the threads, {@link Copying} makes one copy.
 * On disk are {@link CopyFiles} and their {@link CopyIndex}; {@link FoundCopies} opens those of an
 * earlier run.
 *
 * <p><b>Threads of the service</b>
 *
 * <ul>
 *   <li>{@code user-UID}, one for each connection, which also opens and closes files.
 *   <li>{@code copy-N}, {@link Copier#THREADS}, read the source and write copies; up to 256 {@code
 *       copy-in-place} replace those whose source hangs. {@link Copier#close} does not wait for a
 *       hanging one.
 *   <li>{@code accept}, one; {@code patience-N}, two: they answer requests that have waited long
 *       enough, replace hanging threads and check for copies left open.
 * </ul>
 *
 * <p><b>Threads of a mount.</b> {@code cache}, one, receives answers until the connection ends. A
 * reader waits at most a second for an answer.
 *
 * <p><b>Lock order</b>, outermost first; each is the monitor of its object, and all others are
 * innermost. {@link CachedStore} holds the monitor of an open file while it sends a request.
 *
 * <pre>{@code
 * Session < SharedCopies
 * a file of CachedStore < CacheClient
 * }</pre>
 *
 * <p>Nothing waits for a source or sends an answer while it holds a monitor of the service. The
 * monitor of {@link SharedCopies} is held while a copy is opened or the index is written, but not
 * while files are removed or read.
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>One user's source hangs, and all threads wait for it. Cure: at most three quarters of them
 *       work for one user, threads without progress for ten seconds are replaced, and the user's
 *       queue is dropped.
 *   <li>A mount does not receive its answers. Cure: the service never blocks while sending; it
 *       disconnects such a mount.
 *   <li>A reader waits for a copy that does not grow. Cure: after half a second a request is
 *       answered with what the copy has, and the reader reads the source.
 * </ol>
 *
 * <p><b>What may be forgotten</b>
 *
 * <ul>
 *   <li>All copies, at any time: each failure of the cache is a read of the source. A reader of a
 *       truncated copy sees a shorter file, never a wrong byte.
 *   <li>A file below {@code copies} has a record before it gets its name. The index of a killed
 *       service is trusted until the machine reboots; then it is rebuilt from the names of the
 *       files. A copy of an earlier run is verified before it is served.
 * </ul>
 *
 * <p><b>What a user is allowed to do</b> (docs/decisions/0049). Any user may connect and send
 * anything; a malformed message ends the connection. The kernel identifies the user. The open file
 * in a request proves that its user may read it, and the kernel identifies the file; only listed
 * file systems count, and only files whose key can never belong to another. What users report about
 * their open copies can keep a copy but never frees its space: only the kernel decides that a file
 * is no longer open. Connections, requests and copies are limited for each user.
 */
@NullMarked
package io.pmfs.cache;

import org.jspecify.annotations.NullMarked;
