/**
 * The life of a mount: what must hold before it starts, its wiring, the tie to its supervisor, its
 * tasks, and the control socket that answers for it. {@link io.pmfs.daemon.Wiring} alone calls
 * everyone's constructors.
 */
@NullMarked
package io.pmfs.daemon;

import org.jspecify.annotations.NullMarked;
