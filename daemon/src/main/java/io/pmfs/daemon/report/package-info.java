/**
 * What a daemon says of itself and of its cluster, as the control socket and {@code --json} have
 * it. The names of the fields are promised: some are added, none changes.
 */
@NullMarked
package io.pmfs.daemon.report;

import org.jspecify.annotations.NullMarked;
