/**
 * The mounts of this machine: {@link io.pmfs.mounts.Registry} has those of one user, {@link
 * io.pmfs.mounts.Registries} those that a command sees, and {@link io.pmfs.mounts.Holder} keeps one
 * for a job.
 */
@NullMarked
package io.pmfs.mounts;

import org.jspecify.annotations.NullMarked;
