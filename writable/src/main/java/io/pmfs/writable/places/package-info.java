/**
 * Where data files lie: one for each generation of a file's content.
 *
 * <p>{@link io.pmfs.writable.places.DataPlaces} has the places of a mount by the numbers that the
 * tables know: {@code TierPlace} is a directory on a tier, {@code NodePlace} is another node of a
 * cluster, and {@code SourcePlace} is a hidden directory of the source, for what fits nowhere else.
 * A tier that is full or fails refuses a change ({@link
 * io.pmfs.writable.places.DataPlaces#isRefusal}), and the file goes on in the next place; the
 * source's answer is passed on as it is.
 *
 * <p>A {@link io.pmfs.writable.places.DataFile} is a data file, open or not: {@link
 * io.pmfs.writable.places.LocalData} on this node, {@link io.pmfs.writable.places.RemoteData} on
 * another. Who uses one holds the lock of its file.
 */
@NullMarked
package io.pmfs.writable.places;

import org.jspecify.annotations.NullMarked;
