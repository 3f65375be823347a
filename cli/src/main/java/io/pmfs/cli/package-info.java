/** Commands, configuration and the daemon: the one place that knows all other modules. */
@NullMarked
package io.pmfs.cli;

import org.jspecify.annotations.NullMarked;
