/**
 * Mounts that can be changed: outputs are written to a tier, and copied to the source in order.
 *
 * <p>{@link io.pmfs.writable.WritableFileSystem} is what FUSE calls; {@code mount.WritableMount} is
 * it on one node, and {@code remote.RemoteFileSystem} on the others of a cluster. A change goes
 * down through the packages {@code mount}, {@code tree} (names) or {@code data} (contents, which
 * lie in {@code places}), and ends in {@code journal}. From there {@code drain} takes it to the
 * source, by {@code steps}. Each package has a manual.
 *
 * <p>Three rules hold everywhere. A content or change that the journal has announced never changes.
 * Who takes a step at the source has said so in the tables before, looks what is there, does what
 * is missing, and records it. And nobody calls the source while holding the lock of the state.
 */
@NullMarked
package io.pmfs.writable;

import org.jspecify.annotations.NullMarked;
