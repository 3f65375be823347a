/**
 * Which tier holds a copy of which file, and which copies go when room is short. {@link
 * io.pmfs.stage.copies.Copies} reads copies, {@link io.pmfs.stage.copies.CopyIndex} changes their
 * records; the manual is in io.pmfs.stage.
 */
@NullMarked
package io.pmfs.stage.copies;

import org.jspecify.annotations.NullMarked;
