/**
 * The contents of files, and what programs do with them.
 *
 * <p>An {@link io.pmfs.writable.data.OutputFile} is a file in use: its lock, its data file, the
 * file of the source, and what writes changed since the tables were told. {@link
 * io.pmfs.writable.data.OutputFiles} has all of them, one object for a file.
 *
 * <p>A write goes from {@link io.pmfs.writable.data.FileData}, which locks the file, to {@link
 * io.pmfs.writable.data.Contents}: a content that the journal has promised to the source never
 * changes, so a write into it begins a new data file with the same bytes, and one behind it goes on
 * in the same file. The change itself is made by the data file ({@link
 * io.pmfs.writable.places.LocalData}), and if its place has no room, the file moves to the next.
 * When a program closes the file, {@code Announcer} tells the journal of the content: from then on
 * it is promised.
 *
 * <p>{@link io.pmfs.writable.data.Room} removes data files that nothing needs and lets writers wait
 * for the source. {@link io.pmfs.writable.data.Handles} knows what is open, and which node of a
 * cluster writes a file.
 */
@NullMarked
package io.pmfs.writable.data;

import org.jspecify.annotations.NullMarked;
