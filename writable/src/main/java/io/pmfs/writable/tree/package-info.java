/**
 * Names, nodes and attributes as a writable mount shows them.
 *
 * <p>{@link io.pmfs.writable.tree.SourceTree} is what the source has: open directories, listings
 * that are kept for a moment, and the lock that holds while the committer moves a name there. The
 * tables of the journal have what was changed and is not there yet. {@link
 * io.pmfs.writable.tree.Nodes} lays the one over the other: it finds names and nodes, and lists
 * directories. {@link io.pmfs.writable.tree.Names} and {@link io.pmfs.writable.tree.Renames} change
 * them: each looks at the source as far as it must, then takes the lock of the state, looks whether
 * that is still so, and changes names, nodes and journal in one update.
 *
 * <p>A request looks at the source by {@link io.pmfs.writable.tree.SourceLooks}, so that one that
 * does not answer holds nobody up who can go on with what is known. What files contain is known by
 * {@link io.pmfs.writable.tree.WrittenFiles} only.
 *
 * <p>Locks are taken in this order: that of a file, that of moving names ({@code SourceTree}), that
 * of the state, that of a listing. Nobody calls the source while holding that of the state.
 */
@NullMarked
package io.pmfs.writable.tree;

import org.jspecify.annotations.NullMarked;
