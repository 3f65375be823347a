/**
 * The reports of a daemon about itself and its cluster, for the control socket and {@code --json}.
 * The names of the fields are stable: fields are added, never changed.
 */
@NullMarked
package io.pmfs.daemon.report;

import org.jspecify.annotations.NullMarked;
