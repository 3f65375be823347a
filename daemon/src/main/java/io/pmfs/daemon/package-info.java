/**
 * The life of a mount: checks before it starts, its wiring, the link to its supervisor, its tasks,
 * and its control socket. Only {@link io.pmfs.daemon.Wiring} calls the constructors of all parts.
 */
@NullMarked
package io.pmfs.daemon;

import org.jspecify.annotations.NullMarked;
