/**
 * The tables of a writable mount and its journal: what the mount knows, which changes the source
 * does not have yet, and in which order they go there.
 *
 * <p>{@link io.pmfs.writable.journal.State} is the only writer. All that changes together is one
 * {@link io.pmfs.writable.journal.State.Update}, made while its lock is held and never with a call
 * to the source in between. A {@link io.pmfs.writable.journal.Change} is a row of the journal: one
 * record for each kind, with what it needs and what it leaves for others ({@link
 * io.pmfs.writable.journal.Dependency}). The position goes through the journal in order; changes
 * behind it that the source does not have are {@link io.pmfs.writable.journal.Deferred}. An {@link
 * io.pmfs.writable.journal.Intent} says what a step at the source is about to do.
 *
 * <p>Nothing here knows the source, the kernel or other nodes. docs/formats.md describes the rows.
 */
@NullMarked
package io.pmfs.writable.journal;

import org.jspecify.annotations.NullMarked;
