/**
 * The way of changes to the source.
 *
 * <p>A {@link io.pmfs.writable.drain.Drain} lets the {@code Committer} work while there is
 * something to do. That takes the next change of the journal ({@code Window}), or several that one
 * step can stand for ({@code Shortcut}, {@code Batch}), has the step made, and commits its record
 * together with what the tables need not keep any more ({@code Settlement}).
 *
 * <p>What the source refuses is deferred with all that depends on it, and tried again when {@code
 * Retries} says so. {@link io.pmfs.writable.drain.Refused} is what a user can do about it, {@link
 * io.pmfs.writable.drain.LostData} what is done if the bytes are gone, and {@code DrainReport} what
 * can be said about all of it.
 *
 * <p>{@code Committer}, {@code LostData} and what they use belong to the committer's thread; {@code
 * Settlement} is also used by who gives up changes, and has the committer's turn for that.
 */
@NullMarked
package io.pmfs.writable.drain;

import org.jspecify.annotations.NullMarked;
