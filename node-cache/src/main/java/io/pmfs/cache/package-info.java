/**
 * One cache for all users of a node: the service that makes and keeps copies, and the source of a
 * mount that reads them.
 *
 * <p><b>Start reading</b> at {@link CachedStore}, the source as a mount reads it. Its {@link
 * CacheClient} passes open files of the source to the {@link CacheService} in a {@link
 * CacheMessage}; there a {@link Session} answers. {@link SharedCopies} has the copies and their
 * room: {@link KnownCopies} says which there are, {@link CopyRoom} what they take for each {@link
 * CacheUser}, {@link Eviction} which go for others. {@link Copier} has the threads, {@link Copying}
 * makes one copy. What lies on the disk are {@link CopyFiles} and their {@link CopyIndex}; {@link
 * FoundCopies} opens what an earlier run left.
 *
 * <p><b>Threads of the service</b>
 *
 * <ul>
 *   <li>{@code user-UID}, one for each connection, which also opens and closes files; it ends with
 *       the connection.
 *   <li>{@code copy-N}, {@link Copier#THREADS}, read the source and write copies; up to 256 {@code
 *       copy-in-place} work in place of those whose source hangs. {@link Copier#close} gives them
 *       no more work and does not wait for one that hangs.
 *   <li>{@code accept}, one; {@code patience-N}, two: they answer questions that waited long
 *       enough, and look for what hangs or was kept open.
 * </ul>
 *
 * <p><b>Threads of a mount.</b> {@code cache}, one, receives answers until the connection ends. A
 * reader waits for an answer at most a second.
 *
 * <p><b>Lock order</b>, outermost first; each is the monitor of its object, and those that are not
 * named are innermost. {@link CachedStore} holds that of an open file while it asks.
 *
 * <pre>{@code
 * Session < SharedCopies
 * a file of CachedStore < CacheClient
 * }</pre>
 *
 * <p>With a monitor of the service held nothing waits for a source, and nobody is answered. That of
 * {@link SharedCopies} is held while the disk of the cache opens a file or writes the index, but
 * not while it removes or reads files.
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>One user's source hangs, and all threads wait for it. Cure: three quarters of them work for
 *       one user at most, others take the place of those that do nothing for ten seconds, and what
 *       that user has waiting is dropped.
 *   <li>A mount does not receive its answers. Cure: the service never waits to send; it disconnects
 *       such a mount.
 *   <li>A reader waits for a copy that does not grow. Cure: a question is answered after half a
 *       second with what there is, and the reader asks the source.
 * </ol>
 *
 * <p><b>What may be forgotten</b>
 *
 * <ul>
 *   <li>All copies, at any time: each failure of the cache is a read of the source. A file that is
 *       emptied while somebody reads it is shorter, and never has another byte.
 *   <li>A file below {@code copies} has a record before it gets its name. The index of a run that
 *       did not end well is trusted until the machine restarts; then it is made again from the
 *       names of the files. A copy of an earlier run is compared with its checksum before it is
 *       given out.
 * </ul>
 *
 * <p><b>What a user is allowed to do</b> (docs/decisions/0049). Anybody may connect and send
 * anything; a message that no mount sends ends the connection. The kernel says who it is. The open
 * file that comes with a question proves that its user may read it, and the kernel says which file
 * it is; only file systems that root listed count, and only files whose key no other can ever have.
 * What users say about copies that they have open is believed to keep a copy, never to free its
 * room: that is free when the kernel says that nobody has the file open. Connections, questions and
 * copies are limited for each user.
 */
@NullMarked
package io.pmfs.cache;

import org.jspecify.annotations.NullMarked;
