/**
 * The way of changes to the source.
 *
 * <p>A {@link io.pmfs.writable.drain.Drain} lets the {@link io.pmfs.writable.drain.Committer} work
 * while there is something to do. That takes the next change of the journal, or several that one
 * step can stand for ({@link io.pmfs.writable.drain.Shortcut}, {@link
 * io.pmfs.writable.drain.Together}), and makes it: it looks what is there, does what is missing,
 * and records it. Each step can be made twice. {@link io.pmfs.writable.drain.SourceSteps} says
 * which class makes which kind of change; {@link io.pmfs.writable.drain.Step} is what they have in
 * common. Contents are copied ahead of their turn, complete and under temporary names ({@link
 * io.pmfs.writable.drain.Copies}).
 *
 * <p>What the source refuses is deferred with all that depends on it, and tried again when {@link
 * io.pmfs.writable.drain.Again} says so. {@link io.pmfs.writable.drain.Refused} is what a user can
 * do about it.
 *
 * <p>All but {@code Drain}, {@code Refused}, {@code Conflicts} and {@code Pace} belong to the
 * committer's thread, and {@code Copies} to its copiers too.
 */
@NullMarked
package io.pmfs.writable.drain;

import org.jspecify.annotations.NullMarked;
