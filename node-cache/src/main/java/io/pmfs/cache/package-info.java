/**
 * One cache for all users of a node: the service that makes and keeps copies, and the source of a
 * mount that reads them.
 *
 * <p><b>Start reading</b> at {@link CachedStore}, the source as a mount reads it. Its {@link
 * CacheClient} passes open files of the source to the {@link CacheService}, where a {@link Session}
 * answers. {@link SharedCopies} has the copies and their room, {@link Copier} makes them. What lies
 * on the disk are {@link CopyFiles} and their {@link CopyIndex}.
 *
 * <p><b>Threads of the service.</b> One for each connection, which also opens and closes files;
 * {@link Copier#THREADS} that read the source and write copies; one that accepts connections, and
 * two that answer requests that waited long enough, and look for what hangs or was kept open.
 *
 * <p><b>Lock order</b>: {@link Session} before {@link SharedCopies}. With a monitor held nothing
 * waits for a source, and nobody is answered.
 */
@NullMarked
package io.pmfs.cache;

import org.jspecify.annotations.NullMarked;
